"""Very short steps travel merged, so that the wire carries a bounded number of rows a second."""

from probe.wire.messages import Step


def merge_steps(steps: list[Step], most: int) -> list[Step]:
    """At most `most` rows for `steps`, in order: neighbours are summed and their counts added.

    Sums stay exact; what is lost is the spread inside a row.
    """
    if len(steps) <= most:
        return steps
    size = -(-len(steps) // most)
    return [_sum(steps[i : i + size]) for i in range(0, len(steps), size)]


def _sum(steps: list[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]
    phases: dict[str, int] = {}
    for step in steps:
        for name, ns in step.phases.items():
            phases[name] = phases.get(name, 0) + ns
    samples = [step.samples for step in steps if step.samples is not None]
    return Step(
        number=steps[-1].number,
        count=sum(step.count for step in steps),
        start_ns=steps[0].start_ns,
        end_ns=steps[-1].end_ns,
        data_ns=sum(step.data_ns for step in steps),
        startup_ns=sum(step.startup_ns for step in steps),
        forward_ns=sum(step.forward_ns for step in steps),
        backward_ns=sum(step.backward_ns for step in steps),
        optimizer_ns=sum(step.optimizer_ns for step in steps),
        other_ns=sum(step.other_ns for step in steps),
        evaluation_ns=sum(step.evaluation_ns for step in steps),
        checkpoint_ns=sum(step.checkpoint_ns for step in steps),
        compile_ns=sum(step.compile_ns for step in steps),
        phases=phases,
        fetches=sum(step.fetches for step in steps),
        backwards=sum(step.backwards for step in steps),
        optimizer_steps=sum(step.optimizer_steps for step in steps),
        samples=sum(samples) if samples else None,
        ready=steps[0].ready,
        data_max_ns=max(step.data_max_ns for step in steps),
        inference=steps[-1].inference,
    )
