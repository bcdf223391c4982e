#!/bin/sh
# Makes static/preact.js and its licences again: preact, its hooks and htm in one file. Needs npm.
set -eu
out=$(cd "$(dirname "$0")/../internal/webui/static" && pwd)
preact=11.2.0 htm=3.1.1 esbuild=0.28.2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-save --ignore-scripts --no-audit --no-fund "preact@$preact" "htm@$htm"
cat >entry.js <<'JS'
import {h, render} from "preact"
import htm from "htm"
export {render}
export {useState, useEffect, useLayoutEffect, useRef, useMemo} from "preact/hooks"
export const html = htm.bind(h)
JS
npm exec --silent --yes --package "esbuild@$esbuild" -- esbuild entry.js --bundle --format=esm --minify --target=es2022 --log-level=warning --outfile=bundle.js
{
	echo "// @ts-nocheck"
	echo "/* preact $preact (MIT) and htm $htm (Apache-2.0), licences in preact.LICENSE; made by tools/vendor.sh */"
	cat bundle.js
} >"$out/preact.js"
{
	echo "preact $preact"
	echo
	cat node_modules/preact/LICENSE
	echo
	echo "htm $htm"
	echo
	cat node_modules/htm/LICENSE
} >"$out/preact.LICENSE"
