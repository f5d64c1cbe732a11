// The choice of the organisation, for people who publish for several.
import { SelectField } from "../../shared/components/field";
import { setQuery, query } from "../../shared/router";
import { me } from "../me";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

export function currentOrg(): string {
  const ownOrgs = me.value?.orgs ?? [];
  const orgInAddress = query.value.get("org");
  return orgInAddress && ownOrgs.includes(orgInAddress) ? orgInAddress : (ownOrgs[0] ?? "");
}

export function OrgChoice({ name }: { name: string }) {
  const ownOrgs = me.value?.orgs ?? [];
  if (ownOrgs.length < 2) {
    return <b class="cut">{name}</b>;
  }
  return (
    <SelectField
      name="org"
      label={t("org")}
      value={currentOrg()}
      options={ownOrgs.map((ownOrg) => [ownOrg, ownOrg] as const)}
      onChange={(value) => setQuery({ org: value }, { replaces: false })}
    />
  );
}
