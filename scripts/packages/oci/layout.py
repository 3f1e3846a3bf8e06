"""Writes an OCI image layout (https://github.com/opencontainers/image-spec, version 1.0) from root folders: the same bytes for the
same folders and date.

usage: layout.py FOLDER TAG ARCHITECTURE=ROOT...

Writes FOLDER/layout, a folder for skopeo, podman and registries' tools, and FOLDER/latchkey.tar, the same for `docker load` and
`podman load` (which take the first architecture's image from it). What the image says of itself is that of the Dockerfile beside this
file; Docker reads the healthcheck, which the specification does not have, from the same place as in images of its own format.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile

USER = 999
CONFIG = {
    "Env": ["PATH=/usr/local/bin"],
    "Entrypoint": ["docker-entrypoint.sh"],
    "Cmd": ["redis-server"],
    "WorkingDir": "/data",
    "Volumes": {"/data": {}},
    "ExposedPorts": {"6379/tcp": {}},
    "Healthcheck": {
        "Test": ["CMD", "latchkey-server", "--ping"],
        "Interval": 10_000_000_000,
        "Timeout": 3_000_000_000,
        "StartPeriod": 5_000_000_000,
    },
}


class Layout:
    def __init__(self, folder: pathlib.Path, epoch: int):
        self.folder = folder
        self.epoch = epoch
        (folder / "blobs" / "sha256").mkdir(parents=True)

    def add_blob(self, content: bytes) -> dict:
        """Returns the descriptor's digest and size."""
        name = hashlib.sha256(content).hexdigest()
        (self.folder / "blobs" / "sha256" / name).write_bytes(content)
        return {"digest": f"sha256:{name}", "size": len(content)}

    def add_json(self, value: dict) -> dict:
        return self.add_blob(json.dumps(value, sort_keys=True).encode())

    def tar(self, root: pathlib.Path) -> bytes:
        """The folder as a layer: names in order, dates as told, everything root's but /data."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(root.rglob("*")):
                name = str(path.relative_to(root))
                member = archive.gettarinfo(str(path), name)
                member.uid = member.gid = USER if name == "data" else 0
                member.uname = member.gname = ""
                member.mtime = self.epoch
                if member.isreg():
                    with path.open("rb") as content:
                        archive.addfile(member, content)
                else:
                    archive.addfile(member)
        return buffer.getvalue()

    def add_image(self, architecture: str, root: pathlib.Path) -> tuple[dict, list]:
        """Returns the manifest's descriptor for the index, and what `docker load` reads."""
        layer_tar = self.tar(root)
        layer = self.add_blob(gzip.compress(layer_tar, mtime=0))
        created = datetime.datetime.fromtimestamp(self.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        config = self.add_json({
            "architecture": architecture,
            "os": "linux",
            "created": created,
            "config": CONFIG,
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer_tar).hexdigest()]},
            "history": [{"created": created, "created_by": "scripts/package oci"}],
        })
        manifest = self.add_json({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **layer}],
        })
        blobs = [f"blobs/sha256/{blob['digest'][7:]}" for blob in (config, layer)]
        return {"mediaType": "application/vnd.oci.image.manifest.v1+json", **manifest,
                "platform": {"os": "linux", "architecture": architecture}}, blobs

    def finish(self, tag: str, images: list) -> None:
        """One index with all architectures, which the layout's own index names."""
        index = self.add_json({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [descriptor for descriptor, _ in images],
        })
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        entry = {"mediaType": "application/vnd.oci.image.index.v1+json", **index,
                 "annotations": {"org.opencontainers.image.ref.name": tag}}
        (self.folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}, sort_keys=True))
        config, layer = images[0][1]
        (self.folder / "manifest.json").write_text(
            json.dumps([{"Config": config, "RepoTags": [f"latchkey:{tag}"], "Layers": [layer]}]))


def main() -> None:
    folder, tag = pathlib.Path(sys.argv[1]), sys.argv[2]
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    layout = Layout(folder / "layout", epoch)
    images = []
    for argument in sys.argv[3:]:
        architecture, root = argument.split("=", 1)
        images.append(layout.add_image(architecture, pathlib.Path(root)))
    layout.finish(tag, images)
    with tarfile.open(folder / "latchkey.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted((folder / "layout").rglob("*")):
            member = archive.gettarinfo(str(path), str(path.relative_to(folder / "layout")))
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = epoch
            if member.isreg():
                with path.open("rb") as content:
                    archive.addfile(member, content)
            else:
                archive.addfile(member)


if __name__ == "__main__":
    main()
