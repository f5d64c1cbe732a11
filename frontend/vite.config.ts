// How the two entries become the files that travel in the package.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const BUILT = "../src/countersign/web/static";
const ENTRIES = ["store", "work"];

/** The addresses that have pages, told to the server; and a compressed copy of each file. */
function handedOver(): Plugin {
  return {
    name: "handed-over",
    generateBundle() {
      for (const entry of ENTRIES) {
        const source = readFileSync(`${entry}/paths.json`, "utf8");
        this.emitFile({ type: "asset", fileName: `${entry}.paths.json`, source });
      }
      this.emitFile({ type: "asset", name: "mark.svg", source: readFileSync("shared/mark.svg", "utf8") });
    },
    closeBundle() {
      const folder = join(BUILT, "assets");
      for (const name of readdirSync(folder)) {
        if (!name.endsWith(".gz")) {
          writeFileSync(join(folder, `${name}.gz`), gzipSync(readFileSync(join(folder, name)), { level: 9 }));
        }
      }
    },
  };
}

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: BUILT,
    emptyOutDir: true,
    manifest: "manifest.json",
    modulePreload: { polyfill: false },
    target: "es2022",
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: { input: Object.fromEntries(ENTRIES.map((name) => [name, `${name}/main.tsx`])) },
  },
  plugins: [handedOver()],
});
