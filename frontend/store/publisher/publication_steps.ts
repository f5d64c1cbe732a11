// The steps in which a draft is published.
export const STEPS = ["files", "checks", "notes", "review"] as const;
export type Step = (typeof STEPS)[number];
