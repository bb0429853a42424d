"""Secrets on a command line, and what is none."""

import time

import pytest

from gpuwatch.tui.discovery.secrets import MASK, masked

SECRET = "hunter2"


@pytest.mark.parametrize(
    "words",
    [
        ["--token=hunter2"],
        ["--token", "hunter2"],
        ["--hub_token", "hunter2"],
        ["--password=hunter2"],
        ["--db-password", "hunter2"],
        ["-password", "hunter2"],
        ["--api_key=hunter2"],
        ["--wandb.api-key", "hunter2"],
        ["--key", "hunter2"],
        ["+logger.api_key=hunter2"],
        ["WANDB_API_KEY=hunter2"],
        ["AWS_SECRET_ACCESS_KEY=hunter2"],
        ['--config={"lr": 1, "api_key": "hunter2"}'],
        ["Authorization: Bearer hunter2"],
        ["--store=redis://user:hunter2@host:6379/0"],
        ["https://host/path?token=hunter2&lr=1"],
        ["--set=db.password=hunter2"],
        ["--token=a=hunter2=b"],
        ["https://blob/x?sv=1&sig=hunter2"],
        ["--password=a&hunter2"],
        ["--token=,hunter2"],
        ["--db-password=a;hunter2"],
        ["--secret=it's hunter2"],
        ["--secret='hunter2"],
        ["DB_PASSWORD=a}hunter2"],
        ["Authorization: Basic a,hunter2"],
        ['--config={"api_key": "a,hunter2", "lr": 1}'],
        ['--config={"api_key": "a\\"hunter2"}'],
        ["--store=postgres://user:p@hunter2@host/db"],
        ["--store=ftp://me@lab:hunter2@host/db"],
    ],
)
def test_what_is_called_a_secret_is_masked(words: list[str]) -> None:
    found = masked(["train.py", "--lr", "0.1", *words, "--epochs", "3"])
    assert SECRET not in " ".join(found)
    assert MASK in " ".join(found)
    assert found[:3] == ["train.py", "--lr", "0.1"]
    assert found[-2:] == ["--epochs", "3"]
    assert len(found) == 5 + len(words)


@pytest.mark.parametrize(
    "secret",
    [
        "hf_" + "aB3" * 12,
        "sk-proj-" + "aB3-" * 8,
        "ghp_" + "aB3" * 12,
        "github_pat_" + "aB3_" * 8,
        "glpat-" + "aB3-" * 5,
        "xoxb-123456789012-abcdef",
        "AKIA" + "ABCD" * 4,
        "AIza" + "aB3-_" * 7,
        "0123456789abcdef" * 2 + "01234567",
        "eyJhbGciOiJI.eyJzdWIiOiIx.abc-def",
        "aB3d" * 10,
    ],
)
def test_what_has_the_form_of_a_secret_is_masked(secret: str) -> None:
    for word in (secret, f"--x={secret}", f"s3://{secret}/data"):
        assert secret not in masked(["train.py", word])[1]


@pytest.mark.parametrize(
    "word",
    [
        "--max_tokens=4096",
        "--num-tokens",
        "--tokenizer=gpt2",
        "--image_key=jpg",
        "--author=me",
        "--keyboard",
        "--data=/datasets/imagenet-21k/train/n01440764_10026.tar",
        "s3://bucket/llama-3-8b-instruct/checkpoint-12000",
        "run_2026-11-22_resnet50_bs256_lr0.1_wd1e-4_seed3",
        "https://host:8080/path?lr=1",
        "ssh://me@host:2222/data",
        '--config={"keys": "a,b", "lr": 1}',
        "--x=1.0e-5",
        "--token=",
    ],
)
def test_what_is_no_secret_stays(word: str) -> None:
    assert masked(["train.py", word, "next"]) == ["train.py", word, "next"]


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("--password=a&b", "--password=***"),
        ("https://host/path?token=a&lr=1", "https://host/path?token=***&lr=1"),
        ('--x={"api_key": "a,b", "lr": 1}', '--x={"api_key": "***", "lr": 1}'),
        ("postgres://u:p@ss@h:5432/db", "postgres://u:***@h:5432/db"),
        ("redis://u:a@h1,redis://u:b@h2", "redis://u:***@h1,redis://u:***@h2"),
    ],
)
def test_what_is_around_a_secret_stays(word: str, shown: str) -> None:
    assert masked(["train.py", word]) == ["train.py", shown]


def test_an_option_without_a_value_takes_none_away() -> None:
    assert masked(["train.py", "--token", "--lr", "1"]) == ["train.py", "--token", "--lr", "1"]
    assert masked(["train.py", "--token"]) == ["train.py", "--token"]
    assert masked([]) == []


def test_a_long_command_line_takes_no_time() -> None:
    """Words that an enemy chose: the time grows with their length alone."""
    words = ["x", *("a-" * 2_000, "token" * 1_000, "=" * 4_000, "eyJ" * 1_300, "x://" * 1_000)]
    words += ["x://a:" + "@" * 4_000, "a='" * 1_300, "a=\"a='" * 700, 'a="' + "\\" * 4_000]
    began = time.process_time()
    masked(words)
    assert time.process_time() - began < 2
