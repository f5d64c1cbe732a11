// Lints the sources of the pages: every text that a person reads is in locales/, and every text there is used.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

const FOLDERS = ["shared", "store", "work"];
/** The gallery of components, for developers: its samples are not translated. */
const EXEMPT = new Set(["shared/design.tsx"]);
const APPS = ["common", "store", "work"];

/** Attributes and members whose value is shown or read aloud. */
const SHOWN = /^(alt|aria-label|caption|detail|does|help|label|of|placeholder|text|title|words)$/;
/** Elements whose content is the same in every language. */
const UNTRANSLATED = new Set(["code", "kbd", "pre", "style"]);
/** Names that are the same in every language. */
const NAMES = new Set(["OpenAPI", "Countersign", "English", "Deutsch", "ID"]);
/** Names of keys and two keys together: "Ctrl A". */
const KEYS = /^(Ctrl|Alt|Shift|Home|End|Page ?Up|Page ?Down|[A-Z])( (Ctrl|Alt|Shift|Home|End|Page ?Up|Page ?Down|[A-Z]))*$/;
const WORD = /\p{L}{2,}/u;
/** Whether a string is a text of several words, and neither a list of CSS classes nor an HTTP header. */
const SENTENCE = /^\p{Lu}\p{Ll}*[’']?\p{Ll}*(?: [\p{L}’']+){1,}[.!?…]?$/u;

const files = FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)).replaceAll("\\", "/"))
    .filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".d.ts")),
);
const problems = [];
const literals = new Set();
const heads = new Set();
/** Namespaces with keys of the form `${name}.${value}`. */
const composed = new Set();

for (const file of files) {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.ES2022, true);
  const report = (node, text) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
    problems.push(`${file}:${line + 1}: text outside of locales/: ${text.trim()}`);
  };
  const visit = (node) => {
    if (ts.isStringLiteralLike(node)) {
      literals.add(node.text);
    } else if (ts.isTemplateExpression(node)) {
      heads.add(node.head.text);
      if (node.head.text === "" && node.templateSpans[0].literal.text === ".") {
        [...source.text.matchAll(/translator\("(\w+)"\)/g)].forEach(([, namespace]) => composed.add(namespace));
      }
    }
    if (!EXEMPT.has(file) && isText(node)) {
      report(node, node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}

/** Whether a node is a text that people read. */
function isText(node) {
  if (ts.isJsxText(node)) {
    const name = ts.isJsxElement(node.parent) ? node.parent.openingElement.tagName.getText() : "";
    return WORD.test(node.text) && !UNTRANSLATED.has(name);
  }
  if (!ts.isStringLiteralLike(node) || !WORD.test(node.text) || NAMES.has(node.text) || KEYS.test(node.text)) {
    return false;
  }
  const { parent } = node;
  if (ts.isJsxAttribute(parent) || (ts.isPropertyAssignment(parent) && parent.initializer === node)) {
    return SHOWN.test(parent.name.getText()) && !/^(\/|[\w.-]*[.:_-][\w.-]*$)/.test(node.text);
  }
  if (ts.isCallExpression(parent) && parent.expression.getText() === "showToast") {
    return true;
  }
  return SENTENCE.test(node.text);
}

for (const app of APPS) {
  const namespaces = JSON.parse(readFileSync(`locales/en/${app}.json`, "utf8"));
  for (const [namespace, texts] of Object.entries(namespaces)) {
    for (const key of Object.keys(texts)) {
      const isBuilt = [...heads].some((head) => head.endsWith(".") && key.startsWith(head));
      if (!literals.has(key) && !isBuilt && !(composed.has(namespace) && key.includes("."))) {
        problems.push(`locales/en/${app}.json: ${namespace}: no source uses the text: ${key}`);
      }
    }
  }
}

for (const problem of problems) {
  console.error(problem);
}
process.exitCode = problems.length ? 1 : 0;
