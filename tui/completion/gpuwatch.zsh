#compdef gpuwatch
# Completes gpuwatch in zsh: eval "$(gpuwatch completion zsh)"

_gpuwatch_pids() {
    local -a pids
    pids=(${(f)"$(gpuwatch ls --json 2>/dev/null |
        sed -n 's/^{"schema": [0-9]*, "pid": \([0-9]*\),.*"script": "\([^"]*\)".*/\1:\2/p')"})
    _describe 'process' pids
}

_gpuwatch_demos() {
    local -a demos
    demos=(${(f)"$(gpuwatch demo --list ${(M)words:#--gpu} 2>/dev/null | awk 'NR > 1 { print $1 }')"})
    _describe 'demonstration' demos
}

_gpuwatch() {
    local -a subcommands screen
    subcommands=(
        'ls:which processes can be watched'
        'attach:watch a running process'
        'run:start a program with the probe inside'
        'record:write down everything that is seen of a process'
        'replay:look at a recording as if it were happening'
        'doctor:what can be measured here, and what cannot'
        'demo:a real training run with a bottleneck, watched'
        "completion:complete gpuwatch's words in a shell"
    )
    screen=(
        '--theme[colours]:theme:(dark light contrast terminal)'
        '--ascii[no characters beyond ASCII]'
        '--no-color[no colours]'
        '--mouse[take the mouse from the terminal]'
        '--fps[frames a second]:frames:'
    )
    if ((CURRENT == 2)); then
        _describe 'command' subcommands
        _arguments '--version[the versions that matter]' '--help[what there is]'
        return
    fi
    local chosen=$words[2]
    shift words
    ((CURRENT--))
    case $chosen in
        ls) _arguments '--json[one JSON object a process]' '--help[what there is]' ;;
        attach)
            _arguments '--plain[lines of text]' '--once[one report]' '--json[JSON lines]' \
                '--duration[stop after so long]:seconds:' '--no-stacks[do not sample stacks]' \
                '--inject[put the probe into a process without one]' \
                '--yes[do not ask before that]' '--help[what there is]' \
                $screen '1:process:_gpuwatch_pids'
            ;;
        record)
            _arguments '(-o --output)'{-o,--output}'[where to]:file:_files' \
                '--duration[stop after so long]:seconds:' '--no-stacks[do not sample stacks]' \
                '--help[what there is]' '1:process:_gpuwatch_pids'
            ;;
        doctor)
            _arguments '--json[one JSON object a check]' '--help[what there is]' \
                '1:process:_gpuwatch_pids'
            ;;
        replay)
            _arguments '--plain[lines of text]' '--once[one report]' '--json[JSON lines]' \
                '--speed[times as fast as it was]:factor:' '--help[what there is]' \
                $screen '1:recording:_files -g "*.gpuwatch"'
            ;;
        demo)
            _arguments '--gpu[a recording of a GPU]' '--list[which there are]' \
                '--help[what there is]' $screen '1:demonstration:_gpuwatch_demos'
            ;;
        run)
            _arguments '--attach[open the screen here]' '--help[what there is]' \
                '-m[as python -m]:module:' $screen \
                '1:program:{ _files; _command_names -e }' '*::arguments: _normal'
            ;;
        completion) _arguments '--help[what there is]' '1:shell:(bash zsh fish)' ;;
    esac
}

compdef _gpuwatch gpuwatch
