# Completes gpuwatch in fish: gpuwatch completion fish | source

function __gpuwatch_pids
    gpuwatch ls --json 2>/dev/null | string replace -rf '^{"schema": \d+, "pid": (\d+),.*"script": "([^"]*)".*' '$1\t$2'
end

function __gpuwatch_demos
    set -l gpu (string match -- --gpu (commandline -opc))
    gpuwatch demo --list $gpu 2>/dev/null | string match -rg '^(?!NAME)(\S+)'
end

function __gpuwatch_in
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end

complete -c gpuwatch -f
complete -c gpuwatch -n __fish_use_subcommand -a ls -d 'which processes can be watched'
complete -c gpuwatch -n __fish_use_subcommand -a attach -d 'watch a running process'
complete -c gpuwatch -n __fish_use_subcommand -a run -d 'start a program with the probe inside'
complete -c gpuwatch -n __fish_use_subcommand -a record -d 'write down everything that is seen'
complete -c gpuwatch -n __fish_use_subcommand -a replay -d 'look at a recording'
complete -c gpuwatch -n __fish_use_subcommand -a doctor -d 'what can be measured here'
complete -c gpuwatch -n __fish_use_subcommand -a demo -d 'a training run with a bottleneck'
complete -c gpuwatch -n __fish_use_subcommand -a completion -d 'complete words in a shell'
complete -c gpuwatch -n __fish_use_subcommand -l version -d 'the versions that matter'
complete -c gpuwatch -l help -d 'what there is'

complete -c gpuwatch -n '__gpuwatch_in attach record doctor' -a '(__gpuwatch_pids)'
complete -c gpuwatch -n '__gpuwatch_in demo' -a '(__gpuwatch_demos)'
complete -c gpuwatch -n '__gpuwatch_in completion' -a 'bash zsh fish'
complete -c gpuwatch -n '__gpuwatch_in replay' -k -a '(__fish_complete_suffix .gpuwatch)'
complete -c gpuwatch -n '__gpuwatch_in run' -F

complete -c gpuwatch -n '__gpuwatch_in ls attach doctor replay' -l json -d 'JSON, one object a line'
complete -c gpuwatch -n '__gpuwatch_in attach replay' -l plain -d 'lines of text'
complete -c gpuwatch -n '__gpuwatch_in attach replay' -l once -d 'one report'
complete -c gpuwatch -n '__gpuwatch_in attach record' -x -l duration -d 'stop after so many seconds'
complete -c gpuwatch -n '__gpuwatch_in attach record' -l no-stacks -d 'do not sample stacks'
complete -c gpuwatch -n '__gpuwatch_in attach' -l inject -d 'put the probe in'
complete -c gpuwatch -n '__gpuwatch_in attach' -l yes -d 'do not ask before that'
complete -c gpuwatch -n '__gpuwatch_in record' -r -F -s o -l output -d 'where to'
complete -c gpuwatch -n '__gpuwatch_in replay' -x -l speed -d 'times as fast as it was'
complete -c gpuwatch -n '__gpuwatch_in demo' -l gpu -d 'a recording of a GPU'
complete -c gpuwatch -n '__gpuwatch_in demo' -l list -d 'which there are'
complete -c gpuwatch -n '__gpuwatch_in run' -l attach -d 'open the screen here'
complete -c gpuwatch -n '__gpuwatch_in run' -x -s m -d 'as python -m'

complete -c gpuwatch -n '__gpuwatch_in attach run replay demo' -x -l theme -a 'dark light contrast terminal' -d colours
complete -c gpuwatch -n '__gpuwatch_in attach run replay demo' -l ascii -d 'no characters beyond ASCII'
complete -c gpuwatch -n '__gpuwatch_in attach run replay demo' -l no-color -d 'no colours'
complete -c gpuwatch -n '__gpuwatch_in attach run replay demo' -l mouse -d 'take the mouse'
complete -c gpuwatch -n '__gpuwatch_in attach run replay demo' -x -l fps -d 'frames a second'
