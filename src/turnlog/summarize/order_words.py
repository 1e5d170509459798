"""The words by which a sentence forbids or requires something, in several languages, as data.

To add a language, add an entry to `LANGUAGES`. All expressions are searched in lower-case text:

- `orders` finds the words of an order. `reports` finds places where the same words only tell something ("it never
  worked"): what `orders` finds inside such a place does not count.
- `weak` words ("only") count in short sentences; `weak_reports` are their exceptions.
- With `script`, sentences are searched only if they have one of these characters. This saves time.
"""

from __future__ import annotations

from msgspec import Struct


class Words(Struct, frozen=True):
    """The words of one language, as regular expressions in verbose form."""

    orders: str
    reports: str = ""
    weak: str = ""
    weak_reports: str = ""
    script: str = ""


LANGUAGES: dict[str, Words] = {
    "English": Words(
        orders=r"""\b(?:
            never | always | must(?:n['’]t)? | do\ not | don['’]?t | you\ (?:can|may)\ (?:only|not)
            | under\ no\ circumstances
            | should(?:n['’]t|\ not|\ never|\ always|\ only) | you\ should | make\ (?:absolutely\ )?sure
            | be\ (?:very\ )?(?:sure|careful) | refrain | from\ now\ on | at\ all\ times | keep\ in\ mind
            | remember\ (?:to|that|not) | stick\ (?:to|with) | (?:not|never)\ allowed | forbidden | prohibited
            | mandatory
            | off[-\ ]limits | no\ matter\ what | important(?:ly)?: | no\ longer\ (?:use|need|want|have\ to)
            | leave\ [^.]{1,60}(?:alone|as\ (?:it\ )?is|untouched|unchanged|out) | keep\ [^.]{1,60}(?:unchanged
            |intact|as\ is)
            | i\ (?:do\ not|don['’]?t|never|always|only)\ (?:want|like|accept|allow)
            # taken back, allowed again, corrected
            | you\ (?:may|can)\ now | feel\ free\ to | no\ need\ to | (?:ok|okay|fine|allowed)\ (?:now\ )?to
            | you\ (?:do\ not|don['’]?t)\ (?:have|need)\ to | change[d]?\ my\ mind | scratch\ that | correction:
            | forget\ (?:about|what|that|my)
            )(?!\w)""",
        weak=r"""\b(?:only | ensure | avoid | every\ time | whenever | without\ (?:\w+ing|my|using) | prefer | instead
            | use\ [^.]{1,40},?\ not | ask\ (?:me|first|before) | stop\ \w+ing | at\ (?:most|least) | no\ more\ than
            | (?:can|may)\ only)(?!\w)""",
        reports=r"""\b(?:
            (?:it|he|she|they|this|that|there|which|who|has|have|had|['’]ve|['’]s|is|are|was|were|gets?|been
            |i['’]?m|users?
                |that\ should)
                \ (?:also\ |just\ |still\ |really\ |almost\ |probably\ |currently\ )?(?:never|always|only|instead)
            | i\ (?:also\ |just\ |still\ |really\ |almost\ )?(?:never|always|only)(?!\ (?:want|like|accept|allow))
            | you\ (?:also\ |just\ |still\ )?(?:never|always|only)\ (?:\w+ed|did|had|got|made|wrote|ran|forgot|put
            |gave|have|has)
            | (?:i|they|we|you|users?|these|those|but|tests?|things)\ (?:still\ |also\ |just\ |even
            \ |really\ |actually\ )?
                (?:do\ not|don['’]?t)(?!\ (?:want|like|accept|allow|(?:have|need)\ to|use|do|add|write|commit|put
                |change))
            | why\ (?:do\ not|don['’]?t) | (?:do\ not|don['’]?t)\ (?:know|think|understand|see|believe|seem
            |remember|care|mind|you(?!\ (?:dare|ever)\b))
            | if\ (?:you|it|they|i|we)\ (?:do\ not|don['’]?t)
            | (?:there|something|i|someone|somebody)\ must | must[-\ ](?:be\ (?:a|an|some|something|wrong|missing
            |because|due|caused)|have)
            | (?:never|always)\ (?!press|pass|process|address|access|bypass|guess|miss|compress|focus|need|embed
            |seed|feed)\w+(?:s|ed)\b
            | never\ (?:work|happen|end) | never\ ?mind | as\ always | almost\ (?:never|always)
            | i['’]?(?:ll|\ will)\ (?:make\ sure|ensure|be\ sure|stick)
            | just\ to\ make\ sure | i\ (?:just\ )?(?:want|wanted|need|tried)\ to\ (?:make\ sure|be\ sure)
            | you\ should\ (?:have|see|be\ able|know) | stick\ with\ the\ current
            )""",
        weak_reports=r"""\bthe\ only\ [^.]{1,80}\ (?:was|were|had)\b
            | \b(?:gives?|lets?|allows?|helps?|enables?)\ (?:you|people|users|developers|teams)\ [^.]{1,100}\bwithout
            | ^\W*(?:this|that|it|these|those|there|the|he|she|they|an?|i|\*\*)\b(?!['’]d\ prefer
            |\ (?:would\ )?prefer) | ^\W*\*\*
            | \b(?:(?:the|its|their|it\ can)\ only | not\ only | if\ only | only\ (?:one|thing|way|reason|problem
            |difference|because)
            | \w+[-_]only | only[-_]\w+ | \w+s\ (?:can|could)\ (?:\S+\ )+without | without\ (?:knowing|meaning|it\b
            |them\b|realizing) | at\ least\ (?:it|we|i|now|that|for|be)
            | (?:to|will|would|helps?|['’]ll)\ (?:ensure|avoid) | would\ prefer\ if\ not | you\ prefer
            | guidance\ to\ prefer)""",
    ),
    "German": Words(
        orders=r"""\b(?:
            nie | niemals | immer | nicht | kein(?:e[nmrs]?)? | nur | ausschlie(?:ß|ss)lich | muss | musst
            | müssen | müsst
            | darf | darfst | dürfen | sollst | soll | sollen | sollte[nt]? | statt | stattdessen | lieber | unbedingt
            | ab\ jetzt | ab\ sofort | künftig | in\ zukunft | ohne | vermeide\w* | verboten | erlaubt | pflicht
            | stell\w*\ [^.]{0,20}sicher | achte\ (?:darauf|auf) | denk\w*\ daran | merk\w*\ dir | korrektur
            | lass\w*\ [^.]{1,60}(?:in\ ruhe|unverändert|so|weg)
            )\b""",
        reports=r"""^\W*(?:das|es|ich|er|sie|da|hier|warum|wieso|weshalb|leider|irgendwie|was|wie|wo|ist|hat|kann)\b
            (?!.*\b(?:darf|darfst|dürfen|muss|musst|müssen|soll\w*|verboten|erlaubt)\b).*$ | nicht\ nur""",
    ),
    "French": Words(
        orders=r"""\b(?:ne\ \w+\ (?:pas|jamais|plus) | n['’]\w+\ (?:pas|jamais|plus) | ne\ pas | jamais | toujours
            | uniquement
            | seulement | doi[st] | devez | doivent | il\ faut | plutôt | au\ lieu | évite[rz]? | sauf | désormais
            | interdit\w*
            | assure\w*\ (?:toi|vous) | assure[rz]?[-\ ](?:toi|vous) | surtout\ pas)(?!\w)""",
        reports=r"""\b(?:(?:je|il|elle|ça|cela|on|ils)\ (?:ne\ |n['’])\w+ | c['’]est\ toujours | pourquoi\ .*)""",
    ),
    "Spanish, Portuguese, Italian": Words(
        orders=r"""\b(?:nunca | jam[áa]s | siempre | sempre | s[oó]lo | solamente | somente | apenas | solo\ (?:usa
            |en|si|con)
            | debe[ns]? | debes | deve | devem | devi | dovete | evita\w* | senza | sin\ \w+r | excepto | exceto
            | tranne | invece
            | en\ lugar | en\ vez | em\ vez | importante: | recuerda | lembre | ricorda | ya\ no | prohibido
            | proibido | vietato
            | no\ (?:uses|cambies|toques|borres|modifiques|hagas|escribas|a[ñn]adas|olvides) | não\ \w+
            | non\ \w+re | mai
            | aseg[úu]rate | certifique-se | assicurati)(?!\w)""",
        reports=r"""\b(?:(?:eu|ele|ela|isso|isto|io|esso)\ (?:não|sempre|nunca|mai) | não\ (?:sei|funciona|é|está
            |consigo|entendi))""",
    ),
    "Russian": Words(
        orders=r"""\b(?:никогда | всегда | нельзя | только | долж\w+ | не\ \w+(?:й|йте|ть|ти) | вместо
            | запомни\w* | кроме | без
            | обязательно | убедись | запрещ\w+)\b""",
        reports=r"""\b(?:я|он|она|оно|это|мы)\ (?:всегда|никогда|только|не)\b""",
        script="\u0400-\u04ff",
    ),
    "Chinese, Japanese, Korean": Words(
        orders=r"""必须|必須|务必|務必|不要|不得|不可|不能|不准|不许|别|請勿|请勿|禁止|只能|只用|只在|仅|僅|总是|始终|始終|永远|永遠|从不|绝不|絕不
            |应该|應該|改为|改用|改成|而不是|注意|记住|記住|除非|以后|今后|避免|确保|確保
            |必ず|しないで|ないでください|絶対|決して|常に|いつも|だけ|のみ|代わりに|べき|なければ|避け|覚えて|今後|以外|てはいけ|訂正
            |항상|절대|반드시|지\s?마|말아|대신|금지|기억|앞으로|제외""",
        reports=r"""不能(?:用了|运行|工作|显示|打开)|别的|特别|分别|区别|类别|级别|个别|別の|特別|区別""",
        script="\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af",
    ),
    "Arabic, Hebrew, Hindi": Words(
        orders=r"""دائم|أبد|لا\s+ت|يجب|فقط|بدل|بدون|ممنوع|تجنب|تذكر|إلا|من\ الآن|ينبغي
            |תמיד|לעולם|אסור|חובה|אל\s|רק\s|במקום|हमेशा|कभी|केवल|सिर्फ|ज़रूर|मत\s""",
        script="\u0590-\u06ff\u0900-\u097f",
    ),
}
"""The words of each language."""
