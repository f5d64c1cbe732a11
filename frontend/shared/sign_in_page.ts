// The address of the page where people sign in. The work app has none: it asks for the sign-in above the page.
let signInPage = "";

/** Set the address of the sign-in page. A service without such a page asks for the sign-in in its own way. */
export function setSignInPage(path: string): void {
  signInPage = path;
}

/** The address of the sign-in page, which then returns to `returnTo`. Empty if the service has no such page. */
export function signInAddress(returnTo = location.pathname + location.search): string {
  return signInPage && `${signInPage}?return_to=${encodeURIComponent(returnTo)}`;
}
