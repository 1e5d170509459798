# Made by scripts/completions.py from the parser of turnlog. Changes here are lost.
_turnlog_ids() {
    local id told
    while IFS=$'\t' read -r id told; do
        printf -v id %q "$id"
        COMPREPLY+=("$id")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" completion ids "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$cur" 2>/dev/null)
}
_turnlog_files() {
    local file
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do
        COMPREPLY+=("$file")
    done < <(compgen -f -- "$cur")
}
_turnlog_words() {
    local word
    for word; do
        if [[ $word == "$cur"* ]]; then COMPREPLY+=("$word"); fi
    done
}
_turnlog_commands() {
    _turnlog_words chat import ls fork rename rm show diff serve site search errors memory recall mcp handoff request context compact undo why rewind check fit count cache models export visualize gc keep verify doctor scan scrub salvage pack copy rekey config completion demo help
}
_turnlog() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= i
    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            --store|--key) i=$((i + 1)) ;;
            -*|=) ;;
            *) command=${COMP_WORDS[i]}; break ;;
        esac
    done
    case "$command $prev" in
        *' --store') _turnlog_files; return ;;
        *' --key') return ;;
        'chat --model') :; return ;;
        'chat --program') _turnlog_words claude gemini codex; return ;;
        'chat --base-url') :; return ;;
        'chat --server') :; return ;;
        'chat --session') _turnlog_ids; return ;;
        'chat --allow') :; return ;;
        'chat -p') :; return ;;
        'import --discover') _turnlog_files ;;
        'import --newer-than') :; return ;;
        'ls -n') :; return ;;
        'ls --since') :; return ;;
        'ls --agent') :; return ;;
        'ls --folder') _turnlog_files; return ;;
        'ls --source') _turnlog_words interactive non-interactive embedded-server mcp resumed; return ;;
        'ls --label') :; return ;;
        'fork --at') :; return ;;
        'show --turn') :; return ;;
        'show --last') :; return ;;
        'show --at') :; return ;;
        'show --since') :; return ;;
        'show --agent') :; return ;;
        'diff --turn') :; return ;;
        'diff --root') _turnlog_files; return ;;
        'serve --discover') _turnlog_files ;;
        'serve --port') :; return ;;
        'site --requests') :; return ;;
        'search --session') _turnlog_ids; return ;;
        'search --role') :; return ;;
        'search --tool') :; return ;;
        'search --label') :; return ;;
        'search --since') :; return ;;
        'search --until') :; return ;;
        'search --limit') :; return ;;
        'memory --kind') _turnlog_words file symbol command url error id branch person; return ;;
        'memory --limit') :; return ;;
        'recall --tokens') :; return ;;
        'recall --label') :; return ;;
        'mcp --discover') _turnlog_files ;;
        'mcp --project') :; return ;;
        'mcp --label') :; return ;;
        'mcp --tokens') :; return ;;
        'mcp --install') _turnlog_words claude codex gemini; return ;;
        'handoff --to') _turnlog_words claude codex gemini; return ;;
        'handoff --budget') :; return ;;
        'handoff --now') :; return ;;
        'handoff --session-file') _turnlog_files; return ;;
        'request --to') _turnlog_words openai-chat openai-responses anthropic google google-interactions; return ;;
        'request --model') :; return ;;
        'request --server') :; return ;;
        'request --budget') :; return ;;
        'request --strategy') :; return ;;
        'context --to') _turnlog_words openai-chat openai-responses anthropic google google-interactions; return ;;
        'context --model') :; return ;;
        'context --server') :; return ;;
        'context --budget') :; return ;;
        'context --strategy') :; return ;;
        'compact --keep') :; return ;;
        'compact --budget') :; return ;;
        'compact --strategy') :; return ;;
        'compact --to') _turnlog_words openai-chat openai-responses anthropic google google-interactions; return ;;
        'compact --model') :; return ;;
        'compact --server') :; return ;;
        'rewind --turns') :; return ;;
        'rewind --to') :; return ;;
        'check --as') _turnlog_words openai-chat openai-responses anthropic google google-interactions; return ;;
        'check --model') :; return ;;
        'check --server') :; return ;;
        'fit --max-tokens') :; return ;;
        'fit --model') :; return ;;
        'fit --as') _turnlog_words openai-chat openai-responses anthropic google google-interactions; return ;;
        'fit --strategy') :; return ;;
        'count --model') :; return ;;
        'export --format') _turnlog_words html markdown markdown-messages markdown-records json jsonl openai-chat openai-responses anthropic google google-interactions; return ;;
        'export -o'|'export --output') _turnlog_files; return ;;
        'visualize -o'|'visualize --output') _turnlog_files; return ;;
        'visualize --format') _turnlog_words html png; return ;;
        'visualize --max-history-images') :; return ;;
        'gc --older-than') :; return ;;
        'gc --max-disk') :; return ;;
        'gc --max-size') :; return ;;
        'gc --max-sessions') :; return ;;
        'gc --compress-after') :; return ;;
        'pack --older-than') :; return ;;
        'copy --new-key') :; return ;;
        'rekey --new-key') :; return ;;
    esac
    case "$command $cur" in
        ' -'*) _turnlog_words --help --version --store --key ;;
        ' '*) _turnlog_commands ;;
        'chat -'*) _turnlog_words --help --model --program --base-url --server --continue --session --allow --json -p --store --key ;;
        'import -'*) _turnlog_words --help --discover --newer-than --verbose --json --formats --unredacted --store --key ;;
        'import '*) _turnlog_files ;;
        'ls -'*) _turnlog_words --help --all --since --agent --folder --cost --source --label --json -n --store --key ;;
        'fork -'*) _turnlog_words --help --at --store --key ;;
        'fork '*) _turnlog_ids ;;
        'rename -'*) _turnlog_words --help --store --key ;;
        'rename '*) _turnlog_ids ;;
        'rm -'*) _turnlog_words --help --yes --store --key ;;
        'rm '*) _turnlog_ids ;;
        'show -'*) _turnlog_words --help --turn --last --at --full --records --cost --tools --turns --all --since --agent --json --store --key ;;
        'show '*) _turnlog_ids ;;
        'diff -'*) _turnlog_words --help --turn --rewound --stat --root --json --store --key ;;
        'diff '*) _turnlog_ids ;;
        'serve -'*) _turnlog_words --help --discover --port --open --new-token --store --key ;;
        'site -'*) _turnlog_words --help --redact --requests --open --store --key ;;
        'search -'*) _turnlog_words --help --session --role --tool --label --since --until --limit --json --store --key ;;
        'errors -'*) _turnlog_words --help --open --json --store --key ;;
        'errors '*) _turnlog_ids ;;
        'memory -'*) _turnlog_words --help --kind --limit --json --store --key ;;
        'memory '*) _turnlog_ids ;;
        'recall -'*) _turnlog_words --help --tokens --label --for-model --json --store --key ;;
        'mcp -'*) _turnlog_words --help --discover --project --label --tokens --install --titles --hook --print --yes --store --key ;;
        'handoff -'*) _turnlog_words --help --to --budget --now --start --session-file --json --store --key ;;
        'handoff '*) _turnlog_ids; _turnlog_files ;;
        'request -'*) _turnlog_words --help --to --model --server --budget --strategy --explain --json --store --key ;;
        'request '*) _turnlog_ids; _turnlog_files ;;
        'context -'*) _turnlog_words --help --to --model --server --budget --strategy --json --store --key ;;
        'context '*) _turnlog_ids; _turnlog_files ;;
        'compact -'*) _turnlog_words --help --keep --budget --strategy --to --model --server --dry-run --json --store --key ;;
        'compact '*) _turnlog_ids ;;
        'undo -'*) _turnlog_words --help --json --store --key ;;
        'undo '*) _turnlog_ids ;;
        'why -'*) _turnlog_words --help --json --store --key ;;
        'why '*) _turnlog_ids; _turnlog_files ;;
        'rewind -'*) _turnlog_words --help --turns --to --undo --dry-run --json --store --key ;;
        'rewind '*) _turnlog_ids ;;
        'check -'*) _turnlog_words --help --as --model --server --json --store --key ;;
        'check '*) _turnlog_files ;;
        'fit -'*) _turnlog_words --help --max-tokens --model --as --strategy --store --key ;;
        'fit '*) _turnlog_files ;;
        'count -'*) _turnlog_words --help --model --json --store --key ;;
        'count '*) _turnlog_ids; _turnlog_files ;;
        'cache -'*) _turnlog_words --help --json --store --key ;;
        'cache '*) _turnlog_ids ;;
        'models -'*) _turnlog_words --help --servers --json --store --key ;;
        'export -'*) _turnlog_words --help --format --output --messages --records --open --store --key ;;
        'export '*) _turnlog_ids ;;
        'visualize -'*) _turnlog_words --help --output --format --max-history-images --open --store --key ;;
        'visualize '*) _turnlog_ids; _turnlog_files ;;
        'gc -'*) _turnlog_words --help --dry-run --older-than --max-disk --max-size --max-sessions --compress-after --yes --json --store --key ;;
        'keep -'*) _turnlog_words --help --undo --store --key ;;
        'keep '*) _turnlog_ids ;;
        'verify -'*) _turnlog_words --help --json --store --key ;;
        'verify '*) _turnlog_ids ;;
        'doctor -'*) _turnlog_words --help --strict --fix --json --store --key ;;
        'doctor '*) _turnlog_ids ;;
        'scan -'*) _turnlog_words --help --json --store --key ;;
        'scan '*) _turnlog_ids ;;
        'scrub -'*) _turnlog_words --help --yes --store --key ;;
        'scrub '*) _turnlog_ids ;;
        'salvage -'*) _turnlog_words --help --store --key ;;
        'salvage '*) _turnlog_ids ;;
        'pack -'*) _turnlog_words --help --older-than --store --key ;;
        'pack '*) _turnlog_ids ;;
        'copy -'*) _turnlog_words --help --new-key --store --key ;;
        'copy '*) _turnlog_files ;;
        'rekey -'*) _turnlog_words --help --new-key --store --key ;;
        'config -'*) _turnlog_words --help --path --json --store --key ;;
        'completion -'*) _turnlog_words --help --store --key ;;
        'completion '*) _turnlog_words bash zsh fish ;;
        'demo -'*) _turnlog_words --help --store --key ;;
        'help -'*) _turnlog_words --help --store --key ;;
        'help '*) _turnlog_commands ;;
    esac
}
complete -F _turnlog turnlog
