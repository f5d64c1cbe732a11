// The attributes that a field passes to its control: its name and ARIA attributes.
export interface ControlAttributes {
  id: string;
  name: string;
  class: string;
  required?: boolean | undefined;
  "aria-invalid"?: true | undefined;
  "aria-describedby"?: string | undefined;
  "aria-label"?: string;
}
