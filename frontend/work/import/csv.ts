// CSV as people have it (RFC 4180, and semicolons), read and written.

/** The rows of the text, each a list of cells; empty lines are passed over. */
export function parsed(text: string): string[][] {
  const separator = separatorOf(text);
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  const endRow = () => {
    row.push(cell);
    if (row.length > 1 || row[0] !== "") {
      rows.push(row);
    }
    row = [];
    cell = "";
  };
  for (let at = text.startsWith("\ufeff") ? 1 : 0; at < text.length; at++) {
    const letter = text[at];
    if (isQuoted) {
      if (letter !== '"') {
        cell += letter;
      } else if (text[at + 1] === '"') {
        cell += text[++at];
      } else {
        isQuoted = false;
      }
    } else if (letter === '"' && cell === "") {
      isQuoted = true;
    } else if (letter === separator) {
      row.push(cell);
      cell = "";
    } else if (letter === "\n") {
      endRow();
    } else if (letter !== "\r") {
      cell += letter;
    }
  }
  endRow();
  return rows;
}

function separatorOf(text: string): string {
  const first = text.slice(0, (text.indexOf("\n") + 1 || text.length + 1) - 1);
  const counts = [",", ";", "\t"].map((each) => [each, first.split(each).length] as const);
  return counts.sort((a, b) => b[1] - a[1])[0]?.[0] ?? ",";
}

export function written(rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return rows.map((row) => row.map(cell).join(",")).join("\r\n");
}
