// Asks for an agent token, and lists the tools that the MCP endpoint offers for this token.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { FormErrors, TextField } from "../../shared/components/field";
import { Table } from "../../shared/components/table";
import { Problem } from "../../shared/problem";
import { plural, translator } from "../../shared/i18n";
import { listTools, type Tool } from "./mcp_tools";

const t = translator("connect");

export function ToolList() {
  const [token, setToken] = useState("");
  const [tools, setTools] = useState<Tool[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const loadTools = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      setTools(await listTools(token.trim()));
      setProblem(null);
    } catch (error) {
      const received = Problem.from(error);
      setTools(null);
      setProblem(received.status === 401 ? new Problem(401, { detail: t("live.wrong") }) : received);
    }
    setBusy(false);
  };
  return (
    <section class="stack" aria-labelledby="live">
      <h2 id="live">{t("live")}</h2>
      <p class="quiet">{t("live.text")}</p>
      <FormErrors problem={problem} />
      <form class="filters tight" onSubmit={(event) => void loadTools(event)}>
        <TextField name="token" label={t("live.token")} type="password" autocomplete="off" value={token} required onInput={(event) => setToken(event.currentTarget.value)} />
        <Button type="submit" busy={isBusy}>
          {t("live.ask")}
        </Button>
      </form>
      {tools && (
        <>
          <p role="status">{plural(tools.length, t("live.one"), t("live.n"))}</p>
          <Table
            caption={t("live")}
            rows={tools}
            keyOf={(tool) => tool.name}
            columns={[
              { name: "name", label: t("tool"), cell: (tool) => <code>{tool.name}</code> },
              { name: "does", label: t("does"), cell: (tool) => tool.description ?? tool.title ?? "" },
              { name: "kind", label: t("kind"), cell: (tool) => <Kind tool={tool} /> },
            ]}
          />
        </>
      )}
    </section>
  );
}

function Kind({ tool }: { tool: Tool }) {
  if (tool.proposes) {
    return <Chip tone="warn">{t("kind.proposes")}</Chip>;
  }
  return tool.annotations?.readOnlyHint ? <Chip tone="good">{t("kind.reads")}</Chip> : <Chip>{t("kind.writes")}</Chip>;
}
