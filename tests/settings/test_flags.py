"""Words of the command line as values, and defaults as help says them."""

import pytest

from phalanx.cli.commands import main
from phalanx.errors import ConfigError
from phalanx.settings.flags import from_words
from phalanx.training.config import TrainConfig


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("true", True),
        ("yes", True),
        ("1", True),
        ("True", True),
        ("YES", True),
        ("false", False),
        ("no", False),
        ("0", False),
        ("False", False),
        ("NO", False),
    ],
)
def test_words_for_true_and_false(word: str, value: bool) -> None:
    assert from_words(TrainConfig, "critic_truth", word) is value


@pytest.mark.parametrize("word", ["", "maybe", "2", "-1", "y", "on"])
def test_other_words_are_neither_true_nor_false(word: str) -> None:
    with pytest.raises(ConfigError, match="neither true nor false"):
        from_words(TrainConfig, "critic_truth", word)


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        ("hidden", "64x32", (64, 32)),
        ("hidden", "64,32", (64, 32)),
        ("hidden", "64", (64,)),
        ("num_envs", "12", 12),
        ("num_envs", "auto", "auto"),
        ("gamma", "0.5", 0.5),
        ("condition", "0.5,1", (0.5, 1.0)),
    ],
)
def test_words_become_values_of_their_kind(name: str, word: str, value: object) -> None:
    assert from_words(TrainConfig, name, word) == value


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help-all"])
    return " ".join(capsys.readouterr().out.split())


def test_help_says_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("train", capsys)
    assert "taken to hang (default: 60.0)" in text
    assert "(default: 512 for cage2, auto for others)" in text
    assert "between updates (default: 100 for cage2, 128 for others; with impala 100, 32;" in text
    assert "with a3c 100, 8)" in text
    assert "between checkpoints (default: 50; with a3c 50, 1000)" in text
    assert (
        "over each rollout (default: 4 for cage2, 8 for others; with impala 1, 1; ppo, images 1)"
        in text
    )
    assert "of a gradient step (default: 1024 for cage2, 256 for others; with impala 2048," in text
    assert "hidden layers of actor and critic (default: 64 64)" in text
    assert "at the start (default: 0.001; with impala 0.001, 0.002" in text  # one for both
    assert "may move in an update (default: 0.2)" in text
    assert "seconds after" in text


def test_help_says_no_default_where_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("train", capsys)
    assert "(default: None)" not in text
    assert "(default: )" not in text
    assert "(default: False)" in text
