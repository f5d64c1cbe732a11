// Copies the icons named in icons.json from Lucide (ISC licence) to icons.ts of each folder, as one path an icon.
// `npm run icons` writes the files; with --check it only reports whether they are up to date.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const SOURCE = "node_modules/lucide-static/icons";
const names = JSON.parse(readFileSync("icons.json", "utf8"));
const isCheck = process.argv.includes("--check");
const number = (value) => String(Math.round(value * 1000) / 1000);

/** Returns the path data of an SVG shape. A circle becomes two arcs. */
function pathData(tag, of) {
  const at = (name, otherwise = 0) => Number(of[name] ?? otherwise);
  if (tag === "path") {
    return of.d;
  }
  if (tag === "line") {
    return `M${at("x1")} ${at("y1")}L${at("x2")} ${at("y2")}`;
  }
  if (tag === "polyline" || tag === "polygon") {
    return `M${of.points.trim().replaceAll(",", " ")}${tag === "polygon" ? "z" : ""}`;
  }
  if (tag === "circle" || tag === "ellipse") {
    const [cx, cy, rx, ry] = [at("cx"), at("cy"), at("rx", of.r), at("ry", of.r)];
    return `M${number(cx - rx)} ${cy}a${rx} ${ry} 0 1 0 ${number(2 * rx)} 0a${rx} ${ry} 0 1 0 ${number(-2 * rx)} 0`;
  }
  if (tag === "rect") {
    const [x, y, width, height, r] = [at("x"), at("y"), at("width"), at("height"), at("rx", of.ry)];
    if (!r) {
      return `M${x} ${y}h${width}v${height}h${-width}z`;
    }
    const [w, h] = [number(width - 2 * r), number(height - 2 * r)];
    const arc = (dx, dy) => `a${r} ${r} 0 0 1 ${dx} ${dy}`;
    return `M${number(x + r)} ${y}h${w}${arc(r, r)}v${h}${arc(-r, r)}h${-w}${arc(-r, -r)}v${-h}${arc(r, -r)}z`;
  }
  throw new Error(`no path for <${tag}>`);
}

/** Makes the first move of path data absolute, so that the data can be appended to other data. Pairs after a relative
 *  move stay relative lines. */
function absolute(data) {
  const first = /^m\s*(-?(?:\d+\.?\d*|\.\d+))[\s,]*(-?(?:\d+\.?\d*|\.\d+))[\s,]*(?=(.?))/.exec(data);
  return first ? `M${first[1]} ${first[2]}${/[-.\d]/.test(first[3]) ? "l" : ""}${data.slice(first[0].length)}` : data;
}

/** An icon as one path. */
function icon(name) {
  const text = readFileSync(`${SOURCE}/${name}.svg`, "utf8").replace(/<!--.*?-->/gs, "");
  const shapes = [...text.matchAll(/<(path|line|polyline|polygon|circle|ellipse|rect)\s([^>]*?)\/?>/gs)];
  return shapes
    .map(([, tag, attributes]) => pathData(tag, Object.fromEntries([...attributes.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, key, value]) => [key, value]))))
    .map(absolute)
    .join("");
}

/** The text of a folder's icons.ts. */
function written(folder) {
  const lines = names[folder].map((name) => `  "${name}": "${icon(name)}",\n`);
  const all = [...new Set(Object.values(names).flat())].sort().map((name) => `  | "${name}"\n`);
  const type = folder === "shared" ? `\n/** Every icon of both apps. */\nexport type IconName =\n${all.join("")};\n`.replace("\n;", ";") : "";
  return `// Written by icons.mjs from icons.json: icons of Lucide (ISC licence), as path data.\nexport const ICONS = {\n${lines.join("")}} as const;\n${type}`;
}

for (const folder of Object.keys(names)) {
  const [file, text] = [`${folder}/icons.ts`, written(folder)];
  if (!isCheck) {
    writeFileSync(file, text);
  } else if (!existsSync(file) || readFileSync(file, "utf8") !== text) {
    console.error(`${file}: run \`npm run icons\``);
    process.exitCode = 1;
  }
}
