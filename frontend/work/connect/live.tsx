// The tools of a token as the endpoint lists them now: for a token that is pasted here, since nobody is shown one twice.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Faults, TextField } from "../../shared/components/field";
import { Table } from "../../shared/components/table";
import { Problem } from "../../shared/problem";
import { number } from "../../shared/words";
import { say } from "./say";
import { listed, type Tool } from "./tools";

export function Live() {
  const [token, setToken] = useState("");
  const [tools, setTools] = useState<Tool[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const ask = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      setTools(await listed(token.trim()));
      setProblem(null);
    } catch (error) {
      const refused = Problem.from(error);
      setTools(null);
      setProblem(refused.status === 401 ? new Problem(401, { detail: say("live.wrong") }) : refused);
    }
    setBusy(false);
  };
  return (
    <section class="stack" aria-labelledby="live">
      <h2 id="live">{say("live")}</h2>
      <p class="quiet">{say("live.text")}</p>
      <Faults problem={problem} />
      <form class="filters tight" onSubmit={(event) => void ask(event)}>
        <TextField name="token" label={say("live.token")} type="password" autocomplete="off" value={token} required onInput={(event) => setToken(event.currentTarget.value)} />
        <Button type="submit" busy={isBusy}>
          {say("live.ask")}
        </Button>
      </form>
      {tools && (
        <>
          <p role="status">{say("live.n", { n: number(tools.length) })}</p>
          <Table
            caption={say("live")}
            rows={tools}
            keyOf={(each) => each.name}
            columns={[
              { name: "name", label: say("tool"), cell: (each) => <code>{each.name}</code> },
              { name: "does", label: say("does"), cell: (each) => each.description ?? each.title ?? "" },
              { name: "kind", label: say("kind"), cell: (each) => <Kind tool={each} /> },
            ]}
          />
        </>
      )}
    </section>
  );
}

function Kind({ tool }: { tool: Tool }) {
  if (tool.proposes) {
    return <Chip tone="warn">{say("kind.proposes")}</Chip>;
  }
  return tool.annotations?.readOnlyHint ? <Chip tone="good">{say("kind.reads")}</Chip> : <Chip>{say("kind.writes")}</Chip>;
}
