// People and their roles: invite, send a new link, disable and enable.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Dialog } from "../../shared/components/dialog";
import { FormErrors } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import { query, setQuery } from "../../shared/router";
import { number, relativePast, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { addressOf, modelOf } from "../models";
import { InviteForm, InviteLink } from "../users/invite_form";
import { giveRoles, linkFor, managesPeople, MAX_PEOPLE, type People, type Person, loadPeople, roleName, setActive } from "../users/people";
import { Roles } from "../users/role_matrix";
import "../agents/agents.css";
import "../head_action.css";
import "../users/users.css";

const t = translator("users");

export function Users({ meta }: { meta: Meta }) {
  return managesPeople(meta) ? <UsersContent meta={meta} /> : <NotFound />;
}

type UserQuestion = { person: Person; about: "link" | "disable" | "roles" };

function UsersContent({ meta }: { meta: Meta }) {
  const isInviting = query.value.get("invite") === "1";
  const setInviting = (isOpen: boolean) => setQuery({ invite: isOpen ? "1" : "" });
  const [createdUser, setCreatedUser] = useState<{ name: string; link: string } | null>(null);
  const [question, setQuestion] = useState<UserQuestion | null>(null);
  const peopleRequest = useRequest(loadPeople, [], { keepsPrevious: true });
  const enable = async (person: Person) => {
    try {
      await setActive(person, true);
      showToast(t("enabled", { name: person.username }));
    } catch (error) {
      showToast(Problem.from(error).message);
    }
    peopleRequest.reload();
  };
  const hasRoles = modelOf(meta, "grant") !== undefined;
  const isRoles = hasRoles && query.value.get("view") === "roles";
  const roles = peopleRequest.state === "loaded" ? peopleRequest.value.roles : [];
  return (
    <>
      <Heading title={t("title")}>
        {hasRoles && (
          <div class="segments" role="group" aria-label={t("title")}>
            {(["people", "roles"] as const).map((tabName) => (
              <button key={tabName} type="button" aria-pressed={(tabName === "roles") === isRoles} onClick={() => setQuery({ view: tabName === "roles" ? tabName : "" })}>
                {t(tabName)}
              </button>
            ))}
          </div>
        )}
        <span class="right" />
        {!isInviting && (
          <div class="head-action">
            <Button tight variant="strong" onClick={() => setInviting(true)}>
              {t("invite")}
            </Button>
          </div>
        )}
      </Heading>
      <div class="people-page">
      <p class="quiet">{t(isRoles ? "roles.lead" : "lead")}</p>
      {createdUser && <InviteLink {...createdUser} onDone={() => setCreatedUser(null)} />}
      <RequestResult request={peopleRequest}>
        {(people) => isRoles ? <Roles {...{ meta, people: people }} /> : <List {...{ people: people }} onAsk={setQuestion} onEnable={(person) => void enable(person)} />}
      </RequestResult>
      {isInviting && (
        <section class="panel-box" aria-labelledby="inviting">
          <h2 id="inviting">{t("invite")}</h2>
          <InviteForm
            roles={roles}
            onMade={(name, link) => (setCreatedUser({ name, link }), setInviting(false), peopleRequest.reload())}
            onClose={() => {
              setInviting(false);
              setTimeout(() => document.querySelector<HTMLElement>(".head-action .button")?.focus());
            }}
          />
        </section>
      )}
      {question && peopleRequest.state === "loaded" && (
        <Question
          {...{ question: question, people: peopleRequest.value }}
          onLink={(link) => setCreatedUser({ name: question.person.username, link })}
          onClose={(isChanged) => {
            setQuestion(null);
            if (isChanged) {
              peopleRequest.reload();
            }
          }}
        />
      )}
      </div>
    </>
  );
}

interface ListProps {
  people: People;
  onAsk: (question: UserQuestion) => void;
  onEnable: (person: Person) => void;
}

function List({ people, onAsk, onEnable }: ListProps) {
  const titles = new Map(people.roles.map((role) => [role.id, roleName(role)]));
  const rolesOf = (person: Person) => (people.memberships.get(person.id) ?? []).map((membership) => titles.get(membership.role) ?? membership.role.slice(0, 8));
  return (
    <>
      <Table
        caption={t("known")}
        rows={people.people.slice(0, MAX_PEOPLE)}
        keyOf={(person) => person.id}
        columns={[
          { name: "username", label: t("username"), cell: (person) => <a href={addressOf("user", person.id)}>{person.username}</a> },
          { name: "name", label: t("name"), cell: (person) => String(person["name"] ?? "") },
          { name: "roles", label: t("roles"), cell: (person) => rolesOf(person).join(", ") || <span class="quiet">{t("roles.none")}</span> },
          ...(people.people.some((person) => "last_seen_at" in person)
            ? [{ name: "seen", label: t("seen"), cell: (person: Person) => (person["last_seen_at"] ? relativePast(String(person["last_seen_at"])) : <span class="quiet">{t("seen.never")}</span>) }]
            : []),
          {
            name: "state",
            label: t("state"),
            cell: (person) => <Chip tone={person.is_active ? "good" : undefined}>{t(person.is_active ? "active" : "disabled")}</Chip>,
          },
          {
            name: "actions",
            label: t("actions"),
            cell: (person) => {
              const name = person.username;
              return (
                <span class="row">
                  <Button tight aria-label={t("roles.change", { name })} onClick={() => onAsk({ person, about: "roles" })}>
                    {t("roles")}
                  </Button>
                  {person.is_active ? (
                    <>
                      <Button tight aria-label={t("link.of", { name })} onClick={() => onAsk({ person, about: "link" })}>
                        {t("link")}
                      </Button>
                      <Button tight variant="risky" aria-label={t("disable.of", { name })} onClick={() => onAsk({ person, about: "disable" })}>
                        {t("disable")}
                      </Button>
                    </>
                  ) : (
                    <Button tight aria-label={t("enable.of", { name })} onClick={() => onEnable(person)}>
                      {t("enable")}
                    </Button>
                  )}
                </span>
              );
            },
          },
        ]}
      />
      {people.people.length > MAX_PEOPLE && (
        <p>
          <a href="/models/user">{t("more", { n: number(MAX_PEOPLE) })}</a>
        </p>
      )}
    </>
  );
}

interface QuestionProps {
  question: UserQuestion;
  people: People;
  onLink: (link: string) => void;
  onClose: (isChanged: boolean) => void;
}

function Question({ question: { person, about }, people, onLink, onClose }: QuestionProps) {
  const now = people.memberships.get(person.id) ?? [];
  const [roles, setRoles] = useState<ReadonlySet<string>>(new Set(now.map((membership) => membership.role)));
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const name = person.username;
  const actions: Record<UserQuestion["about"], () => Promise<void>> = {
    link: async () => onLink(await linkFor(person.id)),
    disable: async () => {
      await setActive(person, false);
      showToast(t("disabled_now", { name }));
    },
    roles: async () => {
      await giveRoles(person.id, roles, now);
      showToast(t("roles.saved"));
    },
  };
  const run = async () => {
    setBusy(true);
    try {
      await actions[about]();
      onClose(true);
    } catch (error) {
      setProblem(Problem.from(error));
      setBusy(false);
    }
  };
  const turn = (id: string, isOn: boolean) => setRoles(new Set(isOn ? [...roles, id] : [...roles].filter((role) => role !== id)));
  const titles = { link: t("link.title", { name }), disable: t("disable.title", { name }), roles: t("roles.change", { name }) };
  const verbs = { link: t("link.make"), disable: t("disable"), roles: t("roles.save") };
  return (
    <Dialog
      title={titles[about]}
      isOpen
      onClose={() => onClose(problem !== null)}
      actions={
        <Button variant={about === "disable" ? "risky" : "strong"} busy={isBusy} onClick={() => void run()}>
          {verbs[about]}
        </Button>
      }
    >
      <FormErrors problem={problem} />
      {about === "roles" ? (
        <div class="stack tight">
          {people.roles.map((role) => (
            <label key={role.id} class="row tick">
              <input type="checkbox" checked={roles.has(role.id)} onChange={(event) => turn(role.id, event.currentTarget.checked)} />
              {roleName(role)}
            </label>
          ))}
        </div>
      ) : (
        <p>{t(about === "link" ? "link.text" : "disable.text")}</p>
      )}
    </Dialog>
  );
}
