// openid-client: discovery, client credentials, a code with PKCE, an end to both tokens.
import * as oauth from "openid-client";
import { known, scope, sendPersonTo, tell } from "./conversing.mjs";

const seen = {};
const library = new URL(known.library);

async function configured(way) {
  return oauth.discovery(new URL(known.root), known.client_id, undefined, way, {
    algorithm: "oauth2",
    execute: [oauth.allowInsecureRequests],
  });
}

async function status(config, token) {
  try {
    return (await oauth.fetchProtectedResource(config, token, library, "GET")).status;
  } catch (error) {
    if (error instanceof oauth.WWWAuthenticateChallengeError) return error.status;
    throw error;
  }
}

async function ended(config, token) {
  const before = await status(config, token);
  await oauth.tokenRevocation(config, token);
  // A refused revocation would have been thrown.
  return [before, 200, await status(config, token)];
}

const basic = await configured(oauth.ClientSecretBasic(known.client_secret));
const post = await configured(oauth.ClientSecretPost(known.client_secret));
seen.issuer = basic.serverMetadata().issuer;
seen.supportsPKCE = basic.serverMetadata().supportsPKCE();
for (const [name, config] of [["client_secret_basic", basic], ["client_secret_post", post]]) {
  seen[name] = await oauth.clientCredentialsGrant(config, { scope });
  seen[`${name}_ended`] = await ended(config, seen[name].access_token);
}

const verifier = oauth.randomPKCECodeVerifier();
const expectedState = oauth.randomState();
const address = oauth.buildAuthorizationUrl(basic, {
  redirect_uri: known.redirect_uri,
  scope,
  state: expectedState,
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
});
const back = await sendPersonTo(address.href);
seen.code = await oauth.authorizationCodeGrant(basic, back, { pkceCodeVerifier: verifier, expectedState });
seen.code_ended = await ended(basic, seen.code.access_token);
tell(seen);
