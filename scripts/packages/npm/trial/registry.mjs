// A registry for the scope @latchkey alone, from tarballs in a folder: node registry.mjs PORT FOLDER. Packages that are not there
// are answered with 404, as elsewhere.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";

const [port, folder] = process.argv.slice(2);
const packages = new Map();
for (const file of readdirSync(folder).filter((name) => name.startsWith("latchkey-linux-") && name.endsWith(".tgz"))) {
  const archive = path.join(folder, file);
  const manifest = JSON.parse(execFileSync("tar", ["-xzOf", archive, "package/package.json"]));
  packages.set(manifest.name, { manifest, file, bytes: readFileSync(archive) });
}

createServer((request, response) => {
  const name = decodeURIComponent(request.url.slice(1));
  const wanted = packages.get(name);
  const tarball = [...packages.values()].find(({ file }) => name === `tarballs/${file}`);
  if (tarball) return response.end(tarball.bytes);
  if (!wanted) return response.writeHead(404).end("{}");
  const { manifest, file, bytes } = wanted;
  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  const dist = { integrity, tarball: `http://127.0.0.1:${port}/tarballs/${file}` };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ name, "dist-tags": { latest: manifest.version }, versions: { [manifest.version]: { ...manifest, dist } } }));
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));
