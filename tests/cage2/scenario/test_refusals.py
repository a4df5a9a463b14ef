"""What cannot be played is refused in one line that names the key."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from phalanx.cage2 import Batch
from phalanx.cage2.scenario.attackers import check_attackers
from phalanx.cage2.scenario.original_form import in_original_form
from phalanx.cage2.scenario.read import CAGE2, read_scenario
from phalanx.errors import ConfigError

SHORT = """
red_starts_on: User0
hosts:
  User0: {image: windows_user_host1, value: 0}
  User1: {image: linux_user_host1, points_to: [Enterprise0]}
  Enterprise0: {image: Gateway}
subnets:
  User: {hosts: [User0, User1]}
  Enterprise: {hosts: [Enterprise0]}
"""


def refusal(tmp_path: Path, content: str) -> str:
    path = tmp_path / "net.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as refused:
        read_scenario(path)
    line = str(refused.value)
    assert "\n" not in line
    assert line.startswith(("scenario net", str(path)))
    return line


@pytest.mark.parametrize(
    ("said", "instead", "told"),
    [
        ("red_starts_on: User0", "red_starts_on: User7", "red_starts_on: "),
        ("red_starts_on: User0\n", "", "red_starts_on: is missing"),
        ("image: Gateway", "image: Gatway", "hosts.Enterprise0.image: "),
        ("value: 0", "value: 0.05", "hosts.User0.value: "),
        ("value: 0", "price: 0", "hosts.User0.price: is not known here"),
        ("points_to: [Enterprise0]", "points_to: [Enterprise9]", "hosts.User1.points_to: "),
        ("hosts: [Enterprise0]", "hosts: [Enterprise0, User1]", "User1 is in User already"),
        ("hosts: [User0, User1]", "hosts: [User0]", "hosts.User1: is in no subnet"),
        ("  Enterprise0: {", "  User1: {", "User1 is given twice"),
        ("User: {hosts", "User: {access: {Enterprise: gated}, host", "User.host"),
    ],
)
def test_the_short_form(tmp_path: Path, said: str, instead: str, told: str) -> None:
    assert said in SHORT
    assert told in refusal(tmp_path, SHORT.replace(said, instead, 1))


def test_files_that_are_no_scenarios(tmp_path: Path) -> None:
    assert "not YAML" in refusal(tmp_path, "hosts: [")
    assert "must hold a mapping" in refusal(tmp_path, "- 1")
    assert "not YAML" in refusal(tmp_path, "hosts: !!python/object/apply:os.system ['true']")
    hosts = "".join(f"  User{k}: {{image: Gateway}}\n" for k in range(65))
    listed = ", ".join(f"User{k}" for k in range(65))
    many = f"red_starts_on: User0\nhosts:\n{hosts}subnets:\n  User: {{hosts: [{listed}]}}\n"
    assert "65 hosts; from 2 to 64 can be played" in refusal(tmp_path, many)
    with pytest.raises(ConfigError, match="cannot read"):
        read_scenario(tmp_path / "none.yaml")


def _start(content: Any, **changed: str) -> None:
    content["Agents"]["Red"]["starting_sessions"][0] |= changed


CHANGES: dict[str, Callable[[Any], Any]] = {
    "Hosts.User1.image": lambda c: c["Hosts"]["User1"].update(image="Solaris"),
    "Hosts.User1.info.User1.Files": lambda c: c["Hosts"]["User1"]["info"]["User1"].update(Files=1),
    "Hosts.User1.ConfidentialityValue": lambda c: c["Hosts"]["User1"].update(
        ConfidentialityValue="Huge"
    ),
    "Subnets.User.Size": lambda c: c["Subnets"]["User"].update(Size="big"),
    "Subnets.User.NACLs.all.in[0].PortRange": lambda c: c["Subnets"]["User"].update(
        NACLs={"all": {"in": [{"PortRange": 22}]}}
    ),
    "Agents.Red.starting_sessions[0].username": lambda c: _start(c, username="pi"),
    "Agents.Red.starting_sessions[0].hostname": lambda c: _start(c, hostname="Nobody"),
    "Agents.Red.actions": lambda c: c["Agents"]["Red"].update(actions=["Sleep"]),
    "Agents.Blue.actions": lambda c: c["Agents"]["Blue"].update(actions=["Sleep", "Misinform"]),
    "Agents.Blue.starting_sessions": lambda c: c["Agents"]["Blue"]["starting_sessions"].pop(0),
    "Agents.Blue.reward_calculator_type": lambda c: c["Agents"]["Blue"].update(
        reward_calculator_type="Pwn"
    ),
    "Agents": lambda c: c.update(Agents=dict(reversed(c["Agents"].items()))),
    "Agents.Grey": lambda c: c["Agents"].update(Grey={}),
    "Agents.Green.agent_type": lambda c: c["Agents"]["Green"].update(agent_type="BlueGreen"),
    "Agents.Red.AllowedSubnets": lambda c: c["Agents"]["Red"].update(AllowedSubnets=["User"]),
}


@pytest.mark.parametrize("key", CHANGES)
def test_the_original_s_form(tmp_path: Path, key: str) -> None:
    content = in_original_form(CAGE2)
    CHANGES[key](content)
    assert f"net.yaml: {key}: " in refusal(tmp_path, yaml.safe_dump(content, sort_keys=False))


def test_attackers_that_would_stop_with_an_error_in_the_original(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(SHORT)
    with pytest.raises(ConfigError, match="b_line cannot play on scenario net: there is no Op_"):
        Batch(1, red_agent="b_line", scenario=path)
    check_attackers(read_scenario(path), ["meander", "sleep"])
    path.write_text(SHORT.replace("red_starts_on: User0", "red_starts_on: Enterprise0"))
    with pytest.raises(ConfigError, match=r"meander cannot play .* must not be named Enterprise0"):
        check_attackers(read_scenario(path), ["meander"])


@pytest.mark.parametrize("form", ["short", "original"])
def test_anything_anywhere_is_refused_in_one_line_or_played(tmp_path: Path, form: str) -> None:
    whole = yaml.safe_load(SHORT) if form == "short" else in_original_form(CAGE2)
    path, lines = tmp_path / "net.yaml", []
    for k, place in enumerate(places(whole)):
        changed = deepcopy(whole)
        part = changed
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = (None, 7, [["x"]], {"x": 1}, "x")[k % 5]
        path.write_text(yaml.safe_dump(changed, sort_keys=False))
        try:
            read_scenario(path)
        except ConfigError as error:
            lines.append(str(error))
    assert len(lines) > 10
    assert not any("\n" in line for line in lines)


def places(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of every value in a file; of lists, the first."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield (*place, key)
            yield from places(value, (*place, key))
    elif isinstance(content, list) and content:
        yield (*place, 0)
        yield from places(content[0], (*place, 0))


def test_names_are_as_they_stand_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(SHORT.replace("User1", "'7'").replace("  '7':", "  7:"))
    assert read_scenario(path).host_names == ("User0", "7", "Enterprise0")


def test_b_line_stops_where_a_scan_finds_nothing(tmp_path: Path) -> None:
    content = in_original_form(CAGE2)
    rules = {"User": {"in": [{"PortRange": [8000, 9000]}], "out": "all"}}
    content["Subnets"]["Enterprise"]["NACLs"] = rules
    path = tmp_path / "net.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    with pytest.raises(ConfigError, match="a scan of Enterprise1 finds no port"):
        check_attackers(read_scenario(path), ["b_line"])
