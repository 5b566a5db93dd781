"""Settings that lie in a collection of somebody's own, to which `config.toml` is a link."""

from __future__ import annotations

from shell import Shell


def test_the_link_stays_and_the_collection_gets_the_change(sessgit: Shell) -> None:
    sessgit.out("install")
    kept = sessgit.home / "dotfiles" / "sessgit.toml"
    kept.parent.mkdir()
    kept.write_text("# mine\n[record]\nredact = true  # always\n")
    link = sessgit.store / "config.toml"
    link.symlink_to("../../dotfiles/sessgit.toml")
    sessgit.out("config", "record.fsync", "false")
    sessgit.out("off", str(sessgit.project))
    assert str(link.readlink()) == "../../dotfiles/sessgit.toml"
    want = f'# mine\n[record]\nredact = true  # always\nfsync = false\nexclude = ["{sessgit.project}"]\n'
    assert kept.read_text() == want
    assert [path.name for path in kept.parent.iterdir()] == ["sessgit.toml"]


def test_a_link_to_nothing_gets_its_file(sessgit: Shell) -> None:
    sessgit.out("install")
    link = sessgit.store / "config.toml"
    link.symlink_to(sessgit.home / "sessgit.toml")
    sessgit.out("config", "record.fsync", "false")
    assert link.is_symlink()
    assert (sessgit.home / "sessgit.toml").read_text() == "[record]\nfsync = false\n"
    link.unlink()
    link.symlink_to(sessgit.home / "nowhere" / "sessgit.toml")
    done = sessgit("config", "record.fsync", "false")
    assert done.code == 7
    assert f"Error: cannot write {sessgit.home / 'nowhere' / 'sessgit.toml'}: No such file or directory." in done.err
    assert link.is_symlink()
