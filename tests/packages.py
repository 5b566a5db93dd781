"""`make package`: build the wheel and the sdist, install each into a new environment, and record with it.

Each environment is outside of the checkout, so that nothing but the package can be imported. `examples/try.py` then
runs the installed program through the real stub and recorder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT))
    packages = sorted(DIST.iterdir())
    assert [path.suffix for path in packages] == [".whl", ".gz"] or [path.suffix for path in packages] == [
        ".gz",
        ".whl",
    ]
    with ThreadPoolExecutor() as threads:
        for package, _ in zip(packages, threads.map(check, packages), strict=True):
            print(f"{package.name}: installs, records, and shows what it recorded")


def check(package: Path) -> None:
    """Install the package and run the example with it; raises SystemExit if anything fails."""
    with tempfile.TemporaryDirectory(prefix="sessgit-package-") as folder:
        _check(package, Path(folder))


def _check(package: Path, folder: Path) -> None:
    environment = folder / "venv"
    venv.create(environment)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check")
    run(*pip, "install", "--no-compile", str(package))
    shutil.copytree(ROOT / "examples", folder / "examples")
    location = run(str(python), "-c", "import sessgit; print(sessgit.__file__)", cwd=folder)
    assert Path(location.strip()).is_relative_to(environment), location
    version = run(str(environment / "bin" / "sessgit"), "--version", cwd=folder)
    assert version.split()[1] in package.name, version
    output = run(str(python), str(folder / "examples" / "try.py"), cwd=folder)
    assert "sessgit log" in output, output


def run(*command: str, cwd: Path = ROOT) -> str:
    """Return what the command prints; on failure its output is shown."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
