"""The forms by which text that was not typed is recognised, as data: mails, chats, comments, documents, logs, help.

To add another mail program, agent or language, add its words here. Most forms are matched at the beginning of a line,
of which only the first characters are looked at, so that no text takes long. A form is compiled when it is first used.
"""

from __future__ import annotations

import re
from functools import cache

_TIME = r"\d{1,2}[:h]\d\d(?::\d\d)?(?:[.,]\d{1,6})?\s?(?:[ap]\.?m\b\.?)?"
_DATE = r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,2}\.?\s\w{3,10}\.?(?:\s\d{4})?|\w{3,10}\.?\s\d{1,2}(?:,?\s\d{4})?)"
_DAY = rf"(?:(?:yesterday|today|gestern|heute|hier|aujourd'hui|ayer|hoy|ieri|oggi)|{_DATE})(?:\s(?:at|um|à|alle))?,?\s"
_AGO = r"""(?:(?:\d+|an?|one|last)\ ?
    (?:second|sec|s|minute|min|m|hour|hr|h|day|d|week|w|month|mo|year|yr|y)s?\.?\ ago|yesterday|just\ now
    |on\ \w{3,9}\ \d|vor\ \d+\ \w+|il\ y\ a\ \d+|hace\ \d+|\w{3}\ \d{1,2}(?:,\ \d{4})?)"""
_WROTE = r"""(?:(?:wrote|writes|a\ écrit|escribió|ha\ scritto|escreveu|написала?|пишет|pisze|写道|寫道|のメッセージ
        |書きました|님이\ 작성)
    |(?:schrieb|schreef|skrev|kirjoitti|napsal|napisał)\b.{0,80})\s?[:：]\s*$"""
_SENDER = r"from|von|de|da|van|fra|från|od|od|от|差出人|送信者|发件人|寄件者|보낸\ ?사람"
_FIELD = r"""to|cc|bcc|sent|date|subject|reply-to|an|gesendet|datum|betreff|antwort\ an|à|a|pour|envoyé|objet|para
    |enviado|fecha|asunto|inviato|data|oggetto|aan|verzonden|onderwerp|til|till|skickat|sendt|emne|ämne|komu|temat
    |předmět|кому|тема|дата|отправлено|копия|宛先|件名|日時|送信日時|日付|收件人|主题|主旨|发送时间|日期|抄送
    |받는\ ?사람|제목|날짜"""
_FORWARDED = r"""original\ (?:message|e?-?mail)|forwarded\ (?:message|e?-?mail)|weitergeleitete|ursprüngliche
    |message\ (?:d['’]origine|transféré|réexpédié)|mensaje\ (?:original|reenviado)|messaggio\ (?:originale|inoltrato)
    |mensagem\ (?:original|encaminhada)|doorgestuurd|oorspronkelijk|пересылаемое|исходное|転送|元のメッセージ|转发
    |原始邮件"""
# Words of headings above what the user asks.
_OWN = r"""(?:(?:my|the|your|our|more|other|additional|important|hard|strict|general|key|coding|safety)\ )*
        (?:tasks?|todo|goals?|objectives?|request|question|problem|instructions?|rules?|constraints?|requirements?
        |restrictions?|guard\ ?rails?|guidelines?|boundaries|limits?|safety|notes?|important|context|background
        |what\ (?:i|to|not)\b.{0,40}|do['’]?s?(?:\ and\ don['’]?ts)?|don['’]?ts?|steps|plan|deliverables?
        |output(?:\ format)?|format|acceptance\ criteria|scope|bug|feature
        |aufgaben?|ziele?|regeln?|anforderungen|hinweise?|wichtig|kontext|tâche|règles|objectif|contexte|tarea|reglas
        |objetivo|contexto|任务|目标|规则|要求|タスク|ルール)"""
_PASTES = r"""feedback|errors?|output|logs?|trace(?:back)?|comments?|review|says|said|wrote|response|reply|docs
    |document(?:ation)?|article|snippet|report|e-?mail|transcript|context|wiki|readme|thread|newsletter|letter
    |handbook"""
# What is asked for a text that follows. A line that announces rules announces no text.
_WORK_ON = r"""(?![^\n]*\b(?:rules?|constraints?|requirements?|steps|instructions?|notes?|conditions|guidelines?|points
            |restrictions?|format|as\ follows|like\ (?:this|so)|in\ mind|regeln|règles|reglas)\s?:)
        (?:[^\n]*[.!?,]\s)?(?:(?:can|could|would|will)\ you\ |please\ |pls\ )*(?:
        (?:translate|summari[sz]e|proof-?read|paraphrase|rephrase|tl;?dr|übersetze?|traduis|traduisez|traduce|traduci
            |traduza|résume[rz]?)\b[^:：.!?]{0,80}
        |(?:improve|fix|correct|check|rewrite|polish|shorten|explain|edit|review|critique|analy[sz]e|classify|verbessere?
            |korrigiere?|corrige[rz]?|améliore[rz]?)\ (?:\S+\ ){0,3}(?:grammar|spelling|typos|wording|style|tone|text
            |prompts?|sentences?|paragraphs?|translation|letter|essay|article|e?-?mail|message|post|poem|grammatik
            |rechtschreibung|texte?|satz|grammaire|orthographe)(?:\ (?:below|here|of|in|for|and|so)\b[^:：.!?]{0,40})?
        |(?:rewrite|polish|shorten)\ (?:this|it|the\ following)
        |(?:请|請)?(?:把.{0,20})?(?:翻译|翻譯|总结|總結|润色|潤色|改写).{0,30}|.{0,30}(?:訳して|要約して|添削して).{0,10})"""

_SOURCES = {
    # -- mails
    "sender": rf"[>*\s]{{0,4}}(?:{_SENDER})\*{{0,2}}\s{{0,2}}[:：]",
    "field": rf"[>*\s]{{0,4}}(?P<name>{_SENDER}|{_FIELD})\*{{0,2}}\s{{0,2}}[:：]",
    "forwarded": rf"""[->\s]*-{{2,}}\s*(?:begin\ )?(?:{_FORWARDED})
        |(?:begin\ forwarded\ message|anfang\ der\ weitergeleiteten|début\ du\ message\ (?:transféré|réexpédié)
            |inicio\ del\ mensaje|inizio\ messaggio\ inoltrato)\b.{{0,30}}[:：]\s*$
        |(?:fwd?|wg|tr|rv|doorst)\s?:\s|fwd\ (?:from|by|von)\ [^\n.!?]{{1,40}}?\s?[:–—-](?:\s|$)
        |(?:forwarded|weitergeleitet)\ (?:from|by|von)\b[^\n]{{1,60}}[:–-]\s*$""",
    "to_me": r"\s*(?:to|an|à|para|a)\ (?:me|mich|moi|mí)(?:,\ [^.!?\n]{1,60})?\s*$",  # above a mail in Gmail
    "to_model": r"\w+\ (?:claude|chat\ ?gpt|gpt|gemini|copilot|codex|cursor|assistant|agent|ai|bot)\b",
    "wrote": rf"(?=.{{0,250}}[\d@<]).{{3,250}}{_WROTE}",
    "greeting": r"""(?:hi|hello|hey|dear|good\ (?:morning|afternoon|evening)|hallo|guten\ (?:tag|morgen)|moin|liebe[rs]?
        |sehr\ geehrte[rs]?|bonjour|cher|chère|madame|monsieur|hola|estimad[oa]s?|querid[oa]s?|buenos\ días|ciao
        |buongiorno|gentile|olá|prezad[oa]|beste|geachte|hej|здравствуйте|уважаем\w+|привет)\b[^.:;?\n]{0,50}[,!]\s*$""",
    "address": r"[^<>@]{1,120}<[\w.+-]{1,60}@[\w.-]{1,80}>\)?\s*:?\s*$",
    "sign_off": r"""\s*(?:(?:with|many|kind|best|warm|warmest|sincere|mit|viele[nr]?|liebe[nr]?|beste[nr]?
            |freundliche[nr]?|schöne[nr]?|herzliche[nr]?|bien|très|un|cordial|cordiali|distinti|met|vriendelijke|med
            |vänliga?)\ )*
        (?:regards|best|wishes|thanks(?:\ (?:a\ lot|so\ much|again|in\ advance))?|thank\ you|thx|cheers|sincerely|br
        |rgds|yours(?:\ (?:truly|sincerely|faithfully))?|respectfully|take\ care|grü(?:ß|ss)en?|gru(?:ß|ss)|lg|vg|mfg
        |danke|cordialement|bien\ à\ (?:vous|toi)|salutations|merci|amicalement|saludos?(?:\ cordiales)?|atentamente
        |gracias|abrazo|saluti|grazie|atenciosamente|abraços?|obrigad[oa]|groet(?:en|jes)?|hälsning(?:ar)?|mvh|hilsen
        |с\ уважением|спасибо|此致|祝好|敬具|以上)
        (?:[,\s–-]+[\w.\ -]{1,30})?[\s,.!–-]*$""",
    "signature": r"--\s*$",
    "footer": r"""\W{0,3}(?:sent\ from|von\ meinem|gesendet\ (?:von|mit)|envoyé\ (?:de|depuis)|enviado\ desde
        |get\ outlook|p\.?\s?s\b|tel\b|phone|mobil|www\.|https?:|\+?\d[\d\ ()/-]{6,}|-{2,}\s*$|_{3,}|unsubscribe
        |(?:this|these|diese|ce|cet|este|questo)\ (?:e-?mail|message|communication|nachricht|courriel|correo|mensaje)
        |confidential|disclaimer|vertraulich|notice:)""",
    # -- chats and transcripts
    "timed": rf"""[\[(]?(?:{_DAY})?{_TIME}[\])]?\s{{0,3}}(?:[-–|]\s)?(?:<\w|[^\W\d][^:\n]{{0,40}}(?::|$))
        |\S[^\n]{{0,40}}?\s
            (?:[\[(—–·|]\s?(?:{_DAY})?{_TIME}[\])]?|{_DAY}{_TIME}|\s+{_TIME}|\d{{1,2}}:\d\d\s?[ap]m):?\s*$
        |\s*{_TIME}\s*$""",
    # The same of a line that tells a chat by itself.
    "stamped": rf"""\u200e?(?:[\[(](?:{_DAY})?{_TIME}[\])]\s{{0,3}}(?:[-–|]\s)?|(?:{_DAY}){_TIME}\s{{0,3}}[-–|]\s)
            [^\W\d][^:\n]{{0,40}}(?::|(?<![.!?])$)
        |(?!(?:at|by|until|till|before|after|from|on|since|um|bis|ab)\ )
            [^\W\d][\w.'’-]{{0,30}}(?:\ (?:(?-i:[^\W\d_a-z])[\w.'’-]{{0,30}}|del?|van|von)){{0,4}}
            (?:\ {{1,4}}[\[(—–·|]\s?(?:{_DAY})?{_TIME}[\])]?|\ {{1,4}}{_DAY}{_TIME}|\ \ +{_TIME}
                |\ \d{{1,2}}:\d\d\s?[ap]m)\s*$""",
    "time": rf"\s*{_TIME}\s*$",
    "said": r"\W{0,4}[\w\ .'’-]{1,30}\ (?:said|says|wrote|schrieb|sagte|schreibt|a\ dit|a\ écrit|dijo|escribió):\s*$",
    "turn": r"\W{0,5}(?P<name>user|you|human|assistant|ai|chat\s?gpt|claude|gemini|copilot|model)\W{0,5}$",
    "asks": r"(?:user|human|you|me|ich|customer|kunde|question|q|frage|prompt)$",
    "answers": r"(?:assistant|ai|bot|model|answer|a|antwort|agent|chat\s?gpt|gpt[\w.-]*|claude|gemini|copilot|grok)$",
    "comment": rf"""(?=.{{0,120}}$)(?:
            (?!(?:i|we|he|she|they|you|it)\b)@?[\w.-]{{1,40}}(?:\ @?[\w.-]{{1,40}}){{0,2}}
            \ (?:commented|opened|replied|answered|asked|reviewed|(?:left|added)\ a\ comment|created|kommentierte
                |a\ commenté|comentó)\b.{{0,40}}{_AGO}
        |(?:answered|asked|commented|posted|edited|reviewed|modified|opened|kommentiert|beantwortet)\ {_AGO}
        |[\w./@-]{{1,40}}\ {_AGO}\ [|\[•·]|.{{1,80}}\ [·•]\ {_AGO})(?:[^.!?:]|:\d){{0,60}}$""",
    # -- documents
    "heading": r"\#{1,6}\s+\S|={1,5}\s\S.{0,80}$",
    "request": rf"\#{{1,6}}\s+\W{{0,4}}{_OWN}\W{{0,4}}$",
    "own_list": rf"\W{{0,4}}{_OWN}\W{{0,4}}[:：]\s*$",
    "clause": r"""\s*(?:(?:version\ |v)?(?:\d{1,2}\.){1,3}\d{1,2}\.?\s+\S|§+\s?\d
        |(?:art\.|article|artikel|artículo|articolo|artigo|section|clause|abschnitt|klausel|ziffer|kapitel|chapter)
            \ \d[\d.]{0,9}\s*(?:$|[-–—:()]|(?-i:[^\W\d_a-z]))
        |(?:page|seite|página|pagina)\ \d+\ (?:of|von|sur|de|di|/)\ \d)""",
    "underline": r"(?P<mark>[=~\-*\#^+])(?P=mark){2,}\s*$",
    # -- what programs print
    "usage": r"\s*(?:usage|aufruf|verwendung|utilisation|uso|utilizzo|syntax|用法|使い方)\s?[:：]\s*\S",
    "option": r"""\s+-{1,2}[\w?][^\n]{0,60}?\s{2,}\S
        |\s*-{1,2}[\w?][\w-]*(?:,\s--[\w-]+|[=\s][A-Z<\[][\w>\]-]*)?\s{2,}\S""",
    "log": r"""\s*(?:\[?\d{4}-\d\d-\d\d[T\ ]\d\d|\[?\d{4}/\d\d/\d\d\ \d\d:|\[?\d\d:\d\d:\d\d\b
        |(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\ {1,2}\d{1,2}\ \d\d:\d\d:\d\d
        |\[?(?:mon|tue|wed|thu|fri|sat|sun),?\ [\w\ ]{5,12}\d\d:\d\d:\d\d
        |[IWEF]\d{4}\ \d\d:\d\d|[\w.-]{1,60}\s+\|\s|\d{1,3}(?:\.\d{1,3}){3}\s[-\w]
        |(?:\[?(?:info|warn|warning|error|debug|trace|fatal|notice)\]?)\s*[:\[|(]|\[(?:info|warn|warning|error|debug)\]
        |(?=[a-f]{0,40}\d)[0-9a-f]{7,40}\s\S|[\w./\\-]{1,200}\.\w{1,6}\(\d+,\d+\):
        |[\w./\\-]{1,200}\.\w{1,6}:\d+:|\d+:\d+\s+(?:error|warning)\b|(?:FAILED|PASSED|ERROR)\ \S{1,200}::
        |(?:npm|pnpm|yarn|pip|cargo|docker|gradle|mvn|make(?:\[\d+\])?|remote|hint|fatal|panic|e)
            (?::|\ {2,}\S|\ (?:warn|err|error|notice|info)\b|\ warn)
        |(?:\d\d:)?\d\d:\d\d[.,]\d{3}\s-->
        # traces
        |traceback\ \(|caused\ by:|exception\ in\ thread|thread\ '[^'\n]{1,80}'\ panicked
        |at\ (?:(?:async|new)\ )?[\w.$<>/\[\]]{1,200}\ ?\([^)\s]{1,200}[:.]\d|at\ [\w$]+\.[\w.$<>]+\(
        |file\ "[^"\n]{1,200}",\ line\ \d
        # prompts
        |(?:in\ |out)\[\d+\]:\s|>>>\s|\$\ \S|[❯➜]\s|(?:PS\ )?[A-Z]:\\[^>\n]{0,100}>|\([\w.-]{1,40}\)\ [\w.-]{1,40}@
        |[\w.-]{1,40}@[\w.-]{1,40}[:\ ][^\n$\#%]{0,60}[$\#%]\s)""",
    "scenario": r"\s*scenario(?:\ (?:outline|template))?\s?:",
    "story": r"\s*(?:\#.*|@\w.*|feature\s?:.*|scenario(?:\ (?:outline|template))?\s?:.*|background\s?:.*)$",
    # -- parts that are laid out as such
    "titled": r"\s*[-=~]{2,}\s?(?P<title>[^\s=~-][^\n]{0,200}?)\s?[-=~]{2,}\s*$",
    "marker": r"""\W{0,4}(?P<title>(?:start|begin(?:ning)?|end)(?:\ of)?(?:\ the)?
        \ (?:file|document|text|paste|e?-?mail|message|log|contents?|transcript|attachment|quote)\b
        (?::?\s\S{1,80})?|(?:file\ content|webpage\ \d+)\ (?:begin|end))\W{0,4}$""",
    "ends": r"""\W{0,3}(?:(?:file\ content\ |webpage\ \d+\ )?end|ende|fin|fim|eof|stop)\b
        |.{0,100}\b\d+\ (?:passed|failed|errors?|skipped|warnings?)\b""",
    "rule": r"""\s*(?P<mark>[-=*_~]{3,}|\"\"\"|'''|<{3,}|>{3,})\s*$
        |(?P<label><{3,})\s?[\w.]{1,60}(?:\ [\w./]{1,80})?\s*$""",
    "program_path": r"""[^\n]{1,150}
        \.(?:pyi?|[cm]?[jt]sx?|go|rs|java|kt|rb|php|cs|swift|c|h|cc|cpp|hpp|sql|sh|css)[`"']?:?\s*$""",
    "path": r"(?:file(?:name)?\s?:\s?|\#{1,3}\s+)?[`\"']?[\w./\\~@-]{1,150}\.[a-z]\w{0,7}[`\"']?:?\s*$",
    "file": r"""\W{0,4}(?:contents?|inhalt|contenu|contenido)\ (?:of|from|von|de|del|du)\ [^\n]{1,200}:\s*$
        |\[(?:attached\ )?(?:attachment|file|datei|document|anhang)\s?[:：]\s?[^\]\n]{1,200}\]\s*$
        |(?:new\ )?(?:message|e?-?mail|note|comment|reply|feedback|nachricht)\ (?:from|by|von|de)\ [^:\n]{1,60}:\s*$
        |(?:last\ (?:updated|modified|revised)|effective\ date|zuletzt\ aktualisiert|dernière\ mise\ à\ jour
            |última\ actualización)\b.{0,40}\d
        |(?:the\ )?mit\ license(?:\ \(mit\))?\s*$|copyright\ (?:\(c\)|©)\ |permission\ is\ hereby\ granted\b
        |\s*(?:apache\ license|gnu\ (?:\w+\ )?general\ public\ license)\b[^.]{0,40}$
        |\\(?:(?:sub)*section|begin|documentclass)\b
        |(?:attachment|attached\ file|anhang|pièce\ jointe|adjunto)\s?[:：]\s?\S{1,200}\s*$""",
    "above": r"""\W{0,3}(?:end\ of\ (?:the\ )?(?:paste|e?-?mail|text|log|message|thread|document|quote|file|chat)\b
        |that(?:['’]s|\ is|\ was)\ (?:all\ of\ )?(?:the|his|her|their)
            \ (?:paste|e?-?mail|text|log|message|thread|document|chat|conversation|reply|readme)\b
        |[^\n]{0,60}\b(?:e?-?mail|thread|chat|conversation|document|text|readme|issue|ticket|message|comment|transcript)
            \ above\b)""",
    # A line of code, a log, a table, a diff, a quotation, a heading.
    "line": r"""\s*(?:[>|;#│┃╭╰├└⎿●⏺$%+]|[-=_*]{3,}|@@|//|/\*|\*/|\*\ @|\(\*|--(?:\s|\[\[)|@?rem\s
            |\[?\d{4}-\d\d-\d\d[T\ ]|\d\d:\d\d:\d\d|\[\d
            |\d+[→\t|]
            |(?:at|File|Traceback|diff|index|commit|import|from|def|class|function|const|let|var|return|public|private
               |if\ \(|for\ \(|raise|throw|print|echo|sudo)\s+[\w"'.({/<@-]+[\s(=;]*(?:[\w"'.({/<=-]+)?\s*[;{(=]
            |(?:error|warning|warn|info|debug|trace|fatal)\b\s*[:\[(]|[{}\[\]<]|["'][\w.-]+["']\s*:|[\w.-]+=\S
            |["']?[\w./*-]+["']?\ =\ \S|\t)
        | .*\t.*\S | .*\w\(.*\).*[={]""",
    # An order below a label that logs have too.
    "labelled": r"""\s*+(?:[-*•–]\s+|\d{1,2}[.)]\s+)?
        (?:\[(?:important|critical|urgent|mandatory|attention|reminder|notes?|rules?|constraints?|tasks?|wichtig|achtung)
            \]:?\s+(?=[^\W\d_])
        |(?:warning|caution|info|hint)\s?:\s+(?:please\ )?(?:do\ not|don['’]?t|never|always|only|must|no)\b)""",
    # A line that begins with words of prose: it is no code, even if it names calls or ends as code does.
    "sentence": r"""\s*+(?:[-*•–]\s+|\d{1,2}[.)]\s+)?(?!rem\ )
        (?:(?![^\n]*(?:\t|[{>]\s*$))
            (?:(?-i:[^\W\d_a-z])|(?!(?:const|let|var|def|class|function|fn|func|public|private|protected|static|final|export
                |async|await|import|return|raise|throw|if|elif|else|for|while|switch|case|new|using|package|namespace|print
                |echo|sudo|at|file|select|insert|update|delete|create|alter|drop|from(?!\ now))\b))
            [^\W\d_]*(?:['’][^\W\d_]+)?,?\ (?:(?-i:[^\W\d_A-Z])[^\W\d_]*(?:['’][^\W\d_]+)?|`+),?\ (?![=:{+*/&|<>-])
        |(?![^\n]*[\t={}])[^\W\d_]+\ [^\W\d_]+\ [^\n]*[.!?]\s*$)""",
    "code_end": r"(?:[;{}]|\(\)|=>|\);|/>)\s*$",
    # -- lines after which something was pasted: at once, or behind a blank line
    "announces": rf".*\b(?:{_PASTES})\b[^:]*:\s*$",
    "here_it_is": rf"""(?:\W*(?:(?:here|this|below)(?:\ is|\ are|['’]s)\b.*\b(?:{_PASTES})\b[^:]*
        |(?:here|this|below)(?:\ is|\ are|['’]s)\ (?:the|an?|my|his|her|their|our)\ (?:\S+\ ){{0,3}}
            (?:file|text|message|page|content|prompt|paragraph|sentence)
        |(?:the|his|her)\ (?:e?-?mail|text|file|message|letter|page)\ (?:is|says|reads|was|goes)
            (?:\ (?:this|as\ follows))?)
        |\W{{0,4}}{_WORK_ON}\s?)[:：]\s*$""",
    # -- how a text begins that is the output of a tool or a hook
    "output": r"""\W{0,5}(?:(?:tool|command|function|script|shell|terminal|bash|code|execution|cell)[\ _]
            (?:output|results?|response|execution|returned|failed|call)\b
            (?:(?!\b(?:is|are|was|were|must|should|may|can|needs?|has|have)\b(?!\s?:))[^\n]){0,200}? [\]:]
        |(?:tool|command|function|script|shell|terminal|bash|code|execution|cell)[\ _](?:output|results?|response)\s*\n
        |observation:|std(?:out|err)\]?\s*[:\n]|exit\ code:?\ -?\d+\s*(?:\n|$)
        |process\ exited|<returncode>|\[file:\ |chunk\ id:
        |wall\ time:|output\s?:\s*\n|command\s?:\ [^\n]{0,300}\n(?:output|std(?:out|err)|exit)
        |(?:the\ )?(?:result|output)s?\ (?:of|from)\ (?:calling|running|executing|the\ (?:tool|command|call))\b
            [^\n]{0,200}:
        |(?:the\ )?(?:result|output)s?\ (?:of|from)\ [`"'\[]?(?=\w{0,60}_)\w{1,80}+[^\n]{0,200}[:\]]
        |[`"']?(?=\w{0,60}_)\w{1,80}+[`"']?(?:\ tool|\(\))?\ (?:returned|printed|responded|results?|output|response)\b
            [^\n]{0,80}[:\]]\s*\n
        |(?:the\ )?(?:[\w.`-]{1,60}\ )?(?:tool|function)\ (?:returned|printed|responded)\b[^\n]{0,80}:
        |\w{1,40}_(?:output|results?|response)\s?:|(?:search|web)\ results?\b(?:\ for\b[^\n:]{0,100})?:
        |(?:page|file)\ contents?:\s*\n|(?:extracted\ text|ocr|transcript):\s*\n
        |(?:output\ of\ `[^`\n]{1,200}`|`[^`\n]{1,200}`\ (?:returned|printed)):\s*\n
        |(?:results?|output)\ (?:of|from)\ \w+\] | tool\s?:\ ?[^\n]{1,80}\n\W{0,5}(?:result|output)
        |(?:(?:result\ )?\[?\d{1,3}[.\])]\s+)?(?:url|title|source|link)\s?:\ [^\n]{1,300}
            \n\W{0,5}(?:url|title|source|link|snippet|content|description|published)[\w\ ]{0,10}:
        |\d{1,3}\]\s[^\n]{1,200}\n\s*https?:
        |(?:(?:result\ )?\[?\d{1,3}[.\])]\s+)?(?:url|title)\s?:\ [^\n]{1,300}\n\s*https?:
        # what OpenHands, SWE-agent, Claude Code and gemini-cli say in the user's place
        |please\ continue\ (?:working\ )?(?:on\ the\ task\ )?on\ whatever|your\ output\ was\ not\ formatted\ correctly
        |your\ last\ output\ did\ not\ use\ any\ tool|caveat:\ the\ messages\ below\ were|system:\ potential\ loop
        |called\ the\ \w+\ tool\b(?:\ with|\s*[:\n])|contents\ of\ /|\[[\w.-]+\]\ (?:called\ tool|`)
        |(?:\w+:)?\w+\ hook\ (?:feedback|additional\ context|success|error|blocking\ error|stopped)\b
        |<task-notification>|\[\w+(?:\ for\ '[^\n]{0,300}')?\]\ result:
        |\[error\]\ you\ did\ not|\[task\ resumption\])""",
}
# In these, letters count as they are written.
_EXACT = {
    "key": r"""\s*(?:-\s)?["']?[a-z_][\w./-]{0,60}["']?\s?[:=](?:\s|$)|\s*(?:export\ )?[A-Z][A-Z0-9_]{1,60}=
        |\s*\#\s|\s*-\s|\s*\[[\w.:"'/*\ -]{1,80}\]\s*$""",
    "roman": r"[IVX]{1,5}\.\s+[^\W\d_a-z]",
    "speaker": r"""(?![*•–-]\s)[^\w\s]{0,4}\s?
        (?P<name>[^\W\d_a-z][\w.'’-]{0,30}(?:\ [^\W\d_a-z][\w.'’-]{0,30}){0,2})
        \*{0,2}\s?(?:\([^()\n]{1,30}\))?:\*{0,2}\s+\S""",
    "caps": r"(?=\S)(?=[^\n]{0,80}[A-ZÄÖÜ]{3})(?P<title>[^a-zäöüß\n.!?:;]{4,80})$",
    "error": r"\s*(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception|Warning|Panic|Fault)(?:\ \[\w+\])?:\s|Error:\s",
    "diff": r"diff\ --git\ |@@\ |---\ \S|index\ [0-9a-f]{6,}",
    "bullet": r"\s*(?:[-*•–]|\d{1,2}[.)]|[a-z][.)])\s+",
    "prose_key": r"(?:goal|task|aim|todo|rules?|important|ziel|aufgabe)\s?:\s\S",
    "step": r"\s*(?:Given|When|Then|And|But)\ \S",
    "tag": r"<([A-Za-z][\w.-]{0,60})(?:\s[^<>]{0,300})?>",
    # code in a line, and whole sentences in quotation marks
    "inline": r"""`[^`\n]*`|"(?=[^"\n]{20})[^"\n]{1,600}[.!?]"|“(?=[^“”\n]{20})[^“”\n]{1,600}[.!?]”
        |„(?=[^„“”\n]{20})[^„“”\n]{1,600}[.!?][“”]|‘(?=[^‘\n]{20})[^‘\n]{1,600}?[.!?]’
        |«(?=[^«»\n]{20})[^«»\n]{1,600}[.!?]\s?»|»(?=[^«»\n]{20})[^«»\n]{1,600}[.!?]«
        |「[^「」\n]{4,600}」|『[^『』\n]{4,600}』""",
    "codex": r"\s*\#\ (?:Context\ from\ my\ IDE\ setup|Files\ mentioned\ by\ the\ user):",
    # cline tells what the user answered
    "answered": r"""\s*\[(?:TASK\ RESUMPTION|attempt_completion|ask_followup_question|plan_mode_respond
        |act_mode_respond)\b""",
}
# In these, a dot is any character.
_WHOLE = {
    "fences": r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<!--.*?(?:-->|\Z)",
    "answers_in": r"<(feedback|answer|user_message)>(.*?)</\1>",
}


@cache
def form(name: str) -> re.Pattern[str]:
    """The form of this name, compiled."""
    if name in _EXACT:
        return re.compile(_EXACT[name], re.VERBOSE)
    if name in _WHOLE:
        return re.compile(_WHOLE[name], re.DOTALL)
    return re.compile(_SOURCES[name], re.VERBOSE | re.IGNORECASE)
