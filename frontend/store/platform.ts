// Platforms by name, and which one this browser runs on.

export const PLATFORMS = { windows: "Windows", macos: "macOS", linux: "Linux", android: "Android", ios: "iOS", web: "Web" } as const;
export type Platform = keyof typeof PLATFORMS;

/** The platform of a user agent; a guess that only decides what stands first. */
export function platformFromUserAgent(agent: string): Platform {
  if (/Android/.test(agent)) return "android";
  if (/iPhone|iPad/.test(agent)) return "ios";
  if (/Windows/.test(agent)) return "windows";
  return /Mac OS/.test(agent) ? "macos" : "linux";
}

export const currentPlatform = platformFromUserAgent(navigator.userAgent);
