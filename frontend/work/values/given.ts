// What the field around a control hands to it: its name, and what is said of it to who does not see it.
export interface Given {
  id: string;
  name: string;
  class: string;
  required?: boolean | undefined;
  "aria-invalid"?: true | undefined;
  "aria-describedby"?: string | undefined;
  "aria-label"?: string;
}
