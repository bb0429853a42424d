# Completes gpuwatch in bash: eval "$(gpuwatch completion bash)"

_gpuwatch_pids() {
    gpuwatch ls --json 2>/dev/null | sed -n 's/^{"schema": [0-9]*, "pid": \([0-9]*\),.*/\1/p'
}

_gpuwatch_demos() {
    gpuwatch demo --list "$@" 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_gpuwatch() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} words="" screen="--theme --ascii --no-color --mouse --fps"
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        words="ls attach run record replay doctor demo completion --version --help"
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        return
    fi
    case $before in
        --theme)
            COMPREPLY=($(compgen -W "dark light contrast terminal" -- "$word"))
            return
            ;;
        -o | --output)
            COMPREPLY=($(compgen -f -- "$word"))
            return
            ;;
        --duration | --fps | --speed)
            return
            ;;
    esac
    case $command in
        ls) words="--json" ;;
        attach)
            words="--plain --once --json --duration --no-stacks --inject --yes $screen"
            [[ $word == -* ]] || words=$(_gpuwatch_pids)
            ;;
        record)
            words="--output --duration --no-stacks"
            [[ $word == -* ]] || words=$(_gpuwatch_pids)
            ;;
        doctor)
            words="--json"
            [[ $word == -* ]] || words=$(_gpuwatch_pids)
            ;;
        replay)
            words="--plain --once --json --speed $screen"
            if [[ $word != -* ]]; then
                COMPREPLY=($(compgen -f -X '!*.gpuwatch' -- "$word") $(compgen -d -- "$word"))
                return
            fi
            ;;
        demo)
            words="--gpu --list $screen"
            if [[ $word != -* ]]; then
                [[ " ${COMP_WORDS[*]} " == *" --gpu "* ]] && words=$(_gpuwatch_demos --gpu) ||
                    words=$(_gpuwatch_demos)
            fi
            ;;
        run)
            words="--attach -m $screen"
            if [[ $word != -* || $COMP_CWORD -gt 2 && $before != -* ]]; then
                COMPREPLY=($(compgen -f -- "$word"))
                ((COMP_CWORD == 2)) && COMPREPLY+=($(compgen -c -- "$word"))
                return
            fi
            ;;
        completion) words="bash zsh fish" ;;
    esac
    COMPREPLY=($(compgen -W "$words --help" -- "$word"))
}

complete -o filenames -F _gpuwatch gpuwatch
