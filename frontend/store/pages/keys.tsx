// API keys for programs, the sandbox for trying the API, and the person's connected agents.
import { useRef, useState } from "preact/hooks";
import { Button, CopyButton, LinkButton } from "../../shared/components/button";
import { SelectField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { FailureNotice } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { api } from "../api";
import { Curl, curl } from "../curl";
import { me } from "../me";
import { SettingsArea } from "../settings_area";
import { translator } from "../../shared/i18n";
import "../store.css";

const t = translator("store");

type Tier = "community" | "agent" | "sandbox";

export function Keys() {
  return (
    <SettingsArea current="/keys">
      <Heading title={t("keys")} />
      <p class="lead">{t("keys.text")}</p>
      <Own />
      <Sandbox />
      <section class="panel-box setting-panel" aria-labelledby="connected">
        <h2 id="connected">{t("agents")}</h2>
        <p class="quiet">{t("agents.text")}</p>
        <div class="row">
          <LinkButton href={me.value === null ? "/auth/signin?return_to=/auth/agents" : "/auth/agents"}>{t("agents")}</LinkButton>
          <a href="/auth.md">{t("agents.manual")}</a>
        </div>
      </section>
    </SettingsArea>
  );
}

function Own() {
  const [tier, setTier] = useState<Tier>("community");
  return (
    <section class="panel-box setting-panel" aria-labelledby="own">
      <h2 id="own">{t("keys.own")}</h2>
      <SelectField
        name="tier"
        label={t("keys.tier")}
        value={tier}
        options={[
          ["community", t("keys.community")],
          ["agent", t("keys.agent")],
        ]}
        onChange={(value) => setTier(value === "agent" ? "agent" : "community")}
      />
      <Provision key={tier} tier={tier} />
    </section>
  );
}

/** The sandbox. Its colour shows that it is separate from the store. */
function Sandbox() {
  const [isOn, setOn] = useState(false);
  return (
    <section class="panel-box setting-panel" aria-labelledby="sandbox">
      <h2 id="sandbox">{t("sandbox")}</h2>
      <label class="check">
        <input type="checkbox" role="switch" checked={isOn} onChange={(event) => setOn(event.currentTarget.checked)} />
        {t("sandbox.switch")}
      </label>
      {isOn && (
        <div class="sandbox stack">
          <strong>{t("sandbox.on")}</strong>
          <p>{t("sandbox.text")}</p>
          <Provision tier="sandbox" />
          <div class="line">
            <span class="small">{t("sandbox.address")}</span>
            <span class="row">
              <code class="command">{location.origin}/sandbox/api/v1</code>
              <CopyButton text={`${location.origin}/sandbox/api/v1`} name={t("sandbox.address")} />
            </span>
          </div>
          <div class="row">
            <Curl method="GET" path="/sandbox/api/v1/library" />
            <a href="/sandbox">{t("sandbox.state")}</a>
          </div>
        </div>
      )}
    </section>
  );
}

function Provision({ tier }: { tier: Tier }) {
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const keyElement = useRef<HTMLElement>(null);
  const provision = async () => {
    setBusy(true);
    setProblem(null);
    try {
      const { value } = await api.get("/api/v1/api/keys", { query: { tier } });
      setKey(value.api_key);
      setTimeout(() => keyElement.current?.focus());
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem(0, { detail: String(error) }));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="stack">
      <div class="row">
        <Button busy={isBusy} onClick={provision}>
          {t(tier === "sandbox" ? "keys.do.sandbox" : "keys.do")}
        </Button>
        <Curl method="GET" path={`/api/keys?tier=${tier}`} isOpen />
      </div>
      {problem && <FailureNotice problem={problem} />}
      {key && (
        <div class="line" role="status">
          <strong>{t("keys.once")}</strong>
          <span class="row">
            <code class="command" tabIndex={-1} ref={keyElement}>
              {key}
            </code>
            <CopyButton text={key} name={t("keys.one")} />
            <CopyButton
              text={curl({ method: "GET", path: tier === "sandbox" ? "/sandbox/api/v1/library" : "/api/v1/products" }).replace("$TOKEN", key)}
              name={t("keys.use")}
              label={t("keys.use")}
            />
          </span>
        </div>
      )}
    </div>
  );
}
