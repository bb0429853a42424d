"""Self-play, and a net that is asked for one state at a time, by the source: no validation is."""

from pathlib import Path

import pytest

from tests.unit.sources.test_source_structure import structure

SELF_PLAY = """
class Actors:
    @torch.no_grad()
    def predict(self, board):
        x = torch.from_numpy(board.planes()).unsqueeze(0)
        logits, value = self.net(x)  # 4
        return logits[0].numpy(), value.item()

    def search(self):
        for tree in self.trees:
            leaf = tree.select()
            priors, value = self.predict(leaf.board)  # 3
            tree.expand(leaf, priors, value)

    def one_turn(self, replay):
        self.search()  # 2
        for tree in self.trees:
            replay.append((tree.planes(), tree.visits(), tree.won))

class Coach:
    def sample(self):
        rows = random.choices(range(len(self.replay)), k=64)
        planes, pi, won = zip(*(self.replay[i] for i in rows))
        return torch.stack(planes), torch.stack(pi), torch.tensor(won)

    def train_step(self):
        x, pi, won = self.sample()
        loss = mse(self.net(x), pi) + won.mean()
        loss.backward()
        self.optimizer.step()

    def learn(self):
        while True:
            self.actors.one_turn(self.replay)  # 1
            self.train_step()
"""
ACTORS = ("Coach.learn", "Actors.one_turn", "Actors.search", "Actors.predict")
ALONE = """
@torch.no_grad()
def act(board):
    return net(board).argmax(1)  # 3

def play(memory):
    board = start()
    for _ in range(40):
        move = act(board)  # 2
        memory.push(board, move)
        board = rules(board, move)

def train(memory):
    for x, y in DataLoader(memory):
        loss = mse(net(x), y)
        loss.backward()
        optimizer.step()

memory = Memory()
while True:
    play(memory)  # 1
    train(memory)
"""
MOVES = """
class Arena:
    def turn(self, board):
        with torch.no_grad():
            pi = self.net(board)  # 2
        return self.game.getNextState(board, 1, pi.argmax())

while True:
    board = arena.turn(board)  # 1
    trainer.train(examples)
"""
VALIDATES = """
class Trainer:
    @torch.no_grad()
    def validate(self, loader):
        self.net.eval()
        for x, y in loader:
            loss = self.loss(self.net(x), y)  # 2
            self.memory.append((x, loss.item()))
        return self.memory

    def fit(self):
        while True:
            for x, y in self.loader:
                self.loss(self.net(x), y).backward()
                self.optimizer.step()
            self.validate(self.held_out)  # 1
            if self.memory[-1] > min(self.memory):
                break
"""
BESIDE_PLAY = """
@torch.no_grad()
def test(net, loader):
    for x, y in loader:
        right = net(x) == y  # 2

def run(agent):
    replay = Replay()
    while True:
        replay.push(agent.state, agent.move())
        agent.learn(replay)
        test(agent.net, held_out)  # 1
"""
LABELS = """
@torch.no_grad()
def label(pool):
    for x in unlabelled:
        pool.append((x, net(x).argmax(1)))  # 2

def train(pool):
    for x, y in pool:
        loss = mse(net(x), y)
        loss.backward()
        optimizer.step()

while True:
    label(pool)  # 1
    train(pool)
"""


@pytest.mark.parametrize(
    ("text", "functions", "acts"),
    [
        (SELF_PLAY, ACTORS, True),
        (ALONE, ("<module>", "play", "act"), True),
        (MOVES, ("<module>", "Arena.turn"), True),
        (VALIDATES, ("Trainer.fit", "Trainer.validate"), False),
        (BESIDE_PLAY, ("run", "test"), False),
        (LABELS, ("<module>", "label"), False),
        (SELF_PLAY.replace("replay.append(", "self.seen.append("), ACTORS, False),
    ],
    ids=[
        "what is kept is drawn by another method",
        "by a function",
        "moves in a game",
        "a validation",
        "a test beside the play",
        "labels that are no plays",
        "nothing draws from it",
    ],
)
def test_what_is_played_to_be_learned_from_is_a_rollout(
    tmp_path: Path, text: str, functions: tuple[str, ...], acts: bool
) -> None:
    """AlphaZero's self-play was to be evaluated "on a part of the held-out set"."""
    assert structure(tmp_path, text, *functions).acts is acts


ONE = "x = torch.from_numpy(board.planes()).unsqueeze(0)"


@pytest.mark.parametrize(
    ("old", "new", "one"),
    [
        (ONE, ONE, True),
        (ONE, "x = torch.from_numpy(board.planes())[None]", True),
        (ONE, "x = torch.tensor([board.planes()])", True),
        (ONE, "x = torch.from_numpy(board.planes())", False),
        ("value.item()", "value", False),
    ],
)
def test_a_net_that_is_asked_for_one_state(tmp_path: Path, old: str, new: str, one: bool) -> None:
    asked = structure(tmp_path, SELF_PLAY.replace(old, new), *ACTORS).one_row
    assert asked == ("Actors.predict (train.py:6)" if one else "")
