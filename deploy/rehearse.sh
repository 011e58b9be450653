#!/usr/bin/env bash
# Build the image of the Dockerfile without a Docker engine, start it, and say what it weighs and how long it takes.
#
#   deploy/rehearse.sh model.didyma.safetensors
#
# As root on Debian, with the packages buildah and debootstrap. The image that the Dockerfile starts from is made of
# Debian's own packages, as no registry of images is asked: Python 3.11 with its headers, which python:3.11-slim has too.
set -euo pipefail
model=$(realpath "${1:?the model to serve}")
checkout=$(realpath "$(dirname "$0")/..")
work=${REHEARSAL:-$(mktemp -d)}
port=${PORT:-8765}
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
for tool in buildah debootstrap curl; do
    command -v "$tool" >/dev/null || { echo "rehearse: $tool is not installed" >&2; exit 1; }
done

base() {
    local mirror
    mirror=$(awk '/^URIs:/ { print $2; exit }' /etc/apt/sources.list.d/debian.sources)
    debootstrap --variant=minbase --include=python3-dev,python3-venv,ca-certificates \
        bookworm "$work/base" "$mirror" >"$work/debootstrap.log"
    ln -sf /usr/bin/python3 "$work/base/usr/local/bin/python"
    : >"$work/base/etc/apt/sources.list"
    cp -r /etc/apt/sources.list.d /etc/apt/apt.conf.d "$work/base/etc/apt/" # this machine's mirrors
    cp /etc/ssl/certs/ca-certificates.crt "$work/base/etc/ssl/certs/"
    rm -f "$work"/base/var/cache/apt/archives/*.deb
    local empty
    empty=$(buildah from scratch)
    buildah add --quiet "$empty" "$work/base" / >/dev/null
    buildah commit --quiet "$empty" python:3.11-slim >/dev/null
    buildah rm "$empty" >/dev/null
}

seconds() { awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $1 }"; }

buildah inspect --type image python:3.11-slim >/dev/null 2>&1 || base
began=$(date +%s.%N)
buildah bud --quiet --pull-never --network host --tag didyma "$checkout" >"$work/build.log" 2>&1 \
    || { tail -30 "$work/build.log" >&2; exit 1; }
echo "built in $(seconds "$began") s"
container=$(buildah from --pull-never didyma)
root=$(buildah mount "$container")
trap 'kill $(jobs -p) 2>/dev/null || true; buildah rm "$container" >/dev/null' EXIT
echo "size: $(du -sm "$root" | cut -f1) MB, of which the environment $(du -sm "$root/opt/didyma" | cut -f1) MB"
mkdir -p "$root/models"
cp "$model" "$root/models/model.didyma.safetensors"
began=$(date +%s.%N)
# As the Dockerfile says: its user, its command, nothing written.
chroot --userspec=10001:10001 "$root" /opt/didyma/bin/didyma serve /models/model.didyma.safetensors \
    --host 127.0.0.1 --port "$port" >"$work/serve.log" 2>&1 &
until curl --silent --fail "http://127.0.0.1:$port/health" >/dev/null; do
    kill -0 $! 2>/dev/null || { tail -5 "$work/serve.log" >&2; exit 1; }
    sleep 0.05
done
echo "healthy after $(seconds "$began") s"
began=$(date +%s.%N)
curl --silent --fail "http://127.0.0.1:$port/v2/rerank" -d '{"query": "which?", "documents": ["this", "that"]}'
echo
echo "first answer after $(seconds "$began") s"
