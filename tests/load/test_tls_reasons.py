"""Why TLS failed: each failure planted on a server of our own."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.http.tls_provider import Certificate, make_certificate
from tests.load.faulty import ANSWER, always, faulty
from tests.load.loading import load

from assay.model.load import LoadResult

_AUTHORITY = """
[ca]
default_ca = own
[own]
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""


def make_expired(folder: Path) -> Certificate:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    made = Certificate(folder / "expired.crt", folder / "expired.pem")
    request, settings = folder / "request.csr", folder / "ca.cnf"
    settings.write_text(_AUTHORITY.format(folder=folder))
    (folder / "index.txt").touch()
    (folder / "serial").write_text("01")
    subprocess.run(
        ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", made.key, "-out", request],
        check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(
        ["openssl", "ca", "-batch", "-config", settings, "-selfsign", "-keyfile", made.key, "-in", request,
         "-startdate", "20200101000000Z", "-enddate", "20200102000000Z", "-notext", "-out", made.file],
        check=True, capture_output=True,
    )  # fmt: skip
    return made


def reason(result: LoadResult) -> str:
    """The one reason of all four requests."""
    assert result.errors == {"tls": 4}
    ((told, number),) = result.error_reasons["tls"].items()
    assert number == 4
    (warning,) = (text for text in result.warnings if " requests failed: " in text)
    assert told in warning
    return told


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def test_a_self_signed_certificate_is_named_with_what_to_do(certificate: Certificate) -> None:
    with faulty(always(ANSWER), certificate.server_context()) as server:
        found = load(server.url)
    assert "self" in reason(found)
    assert "signed" in reason(found)
    assert "--ca-file" in found.warnings[-1]


def test_an_expired_certificate_is_named(tmp_path: Path) -> None:
    expired = make_expired(tmp_path)
    with faulty(always(ANSWER), expired.server_context()) as server:
        found = load(server.url, ca_file=str(expired.file))
    assert reason(found) == "certificate has expired"


def test_a_certificate_for_another_host_is_named_with_the_host(tmp_path: Path) -> None:
    other = make_certificate(tmp_path, "127.0.0.9")
    with faulty(always(ANSWER), other.server_context()) as server:
        told = reason(load(server.url, ca_file=str(other.file)))
    assert "mismatch" in told
    assert "127.0.0.1" in told


def test_a_server_with_an_old_protocol_is_named(certificate: Certificate) -> None:
    context = certificate.server_context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with faulty(always(ANSWER), context) as server:
        told = reason(load(server.url, ca_file=str(certificate.file)))
    assert "protocol" in told


def test_the_reason_stands_in_every_document(certificate: Certificate, assay_inline: AssayInline) -> None:
    with faulty(always(ANSWER), certificate.server_context()) as server:
        done = assay_inline("load", server.url, "--requests", "4", "--json")
    assert done.code == 1
    assert json.loads(done.out)["verdict"] == "no_answers"
    ((told, number),) = json.loads(done.out)["error_reasons"]["tls"].items()
    assert number == 4
    assert told in assay_inline("show", "last", "--json").out
    (page,) = assay_inline("report", "last", "--format", "md", "--out", "page", "--json").json["files"]
    assert told.replace("-", "") in Path(assay_inline.folder, page).read_text().replace("-", "")
