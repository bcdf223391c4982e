#!/bin/sh
# Run by hand to raise the version. Fetches Swagger UI for the docs page, checks it against the recorded digest and packs it so that every run gives the same bytes.
set -eu
cd "$(dirname "$0")"
version=5.35.0
sha256=1b8e891893404ea4c3558b6a87e2a3e494e7eedba41168c2ece5800a391a6ea6

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm pack --silent --pack-destination "$work" "swagger-ui-dist@$version" >/dev/null
echo "$sha256  $work/swagger-ui-dist-$version.tgz" | sha256sum --check --quiet -
tar -xzf "$work/swagger-ui-dist-$version.tgz" -C "$work"
for file in swagger-ui-bundle.js swagger-ui.css; do
	sed '/^\/[/*][#@] sourceMappingURL=/d' "$work/package/$file" | gzip -9 -n >"$file.gz"
done
cp "$work/package/LICENSE" "$work/package/NOTICE" "$work/package/swagger-ui-bundle.js.LICENSE.txt" .
