// Builds the files of the package from the two entry points.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const BUILT = "../src/countersign/web/static";
const APPS = ["store", "work"];
const LANGUAGES = ["en", "de"];

/** The texts of an app in one language, as a script that runs before the app's own. */
function messages(app: string, language: string): string {
  const files = ["common", app].map((name) => JSON.parse(readFileSync(`locales/${language}/${name}.json`, "utf8")));
  return `globalThis.MESSAGES=${JSON.stringify(Object.assign({}, ...files))};`;
}

/** The packages that are part of the built pages, and whose licences require their names there. */
const THIRD_PARTIES = ["preact", "@preact/signals", "@preact/signals-core", "@fontsource-variable/geist", "lucide-static"];

/** The licence texts of the third parties, one after the other. */
function licences(): string {
  const texts = THIRD_PARTIES.map((name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`);
  return texts.join(`\n${"-".repeat(72)}\n\n`);
}

/** The files that the server needs besides the bundle: addresses and texts of each app, and a compressed copy of each
 *  file. */
function serverFiles(): Plugin {
  return {
    name: "server-files",
    generateBundle() {
      for (const app of APPS) {
        this.emitFile({ type: "asset", fileName: `${app}.paths.json`, source: readFileSync(`${app}/paths.json`, "utf8") });
        for (const language of LANGUAGES) {
          this.emitFile({ type: "asset", name: `messages-${app}-${language}.js`, source: messages(app, language) });
        }
      }
      this.emitFile({ type: "asset", fileName: "third-party-licences.txt", source: licences() });
      this.emitFile({ type: "asset", name: "mark.svg", source: readFileSync("shared/mark.svg", "utf8") });
    },
    closeBundle() {
      const folder = join(BUILT, "assets");
      for (const name of readdirSync(folder)) {
        if (!/\.(gz|woff2)$/.test(name)) {
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
    rollupOptions: {
      input: Object.fromEntries(APPS.map((name) => [name, `${name}/main.tsx`])),
      // Modules that both apps load are put into one file, so that the first page requests few files.
      output: { advancedChunks: { groups: [{ name: "shared", test: /node_modules|\/shared\/(?!design\.tsx|chart)/ }] } },
    },
  },
  plugins: [serverFiles()],
});
