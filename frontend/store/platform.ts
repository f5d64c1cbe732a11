// Platforms by name, and which one this browser runs on.

export const PLATFORMS = { windows: "Windows", macos: "macOS", linux: "Linux", android: "Android", ios: "iOS", web: "Web" } as const;
export type Platform = keyof typeof PLATFORMS;

/** Guess the platform from a user agent. It only decides which file is shown first. */
export function platformFromUserAgent(agent: string): Platform {
  if (/Android/.test(agent)) return "android";
  if (/iPhone|iPad/.test(agent)) return "ios";
  if (/Windows/.test(agent)) return "windows";
  return /Mac OS/.test(agent) ? "macos" : "linux";
}

export const currentPlatform = platformFromUserAgent(navigator.userAgent);

const ARCHITECTURES: readonly (readonly [name: string, pattern: RegExp])[] = [
  ["x86-64", /^(x86[_-]?64|amd64|x64|win64)$/],
  ["arm64", /^(arm64|aarch64|arm64-v8a)$/],
  ["universal", /^universal2?$/],
  ["x86", /^(x86|i[3-6]86|win32)$/],
  ["armv7", /^(armv7l?|armhf|armeabi-v7a)$/],
  ["riscv64", /^riscv64$/],
];

/** The processor architecture that is part of a file's name. The API has no other member for it. */
export function architectureOf(filename: string): string | null {
  const nameParts = filename.toLowerCase().replace(/x86-64/g, "x86_64").split(/[-.+\s]|_(?!64)/);
  return ARCHITECTURES.find(([, pattern]) => nameParts.some((part) => pattern.test(part)))?.[0] ?? null;
}
