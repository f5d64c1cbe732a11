// oauth4webapi: discovery of both kinds, client credentials, a code with PKCE, tokens looked into, an end to them.
import * as oauth from "oauth4webapi";
import { known, scope, sendPersonTo, tell } from "./conversing.mjs";

const loopback = { [oauth.allowInsecureRequests]: true };
const resource = await oauth.processResourceDiscoveryResponse(
  new URL(known.base),
  await oauth.resourceDiscoveryRequest(new URL(known.base), loopback),
);
const issuer = new URL(resource.authorization_servers[0]);
const as = await oauth.processDiscoveryResponse(
  issuer,
  await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...loopback }),
);
const client = { client_id: known.client_id };
const basic = oauth.ClientSecretBasic(known.client_secret);
const post = oauth.ClientSecretPost(known.client_secret);
const seen = { issuer: as.issuer };

async function library(token) {
  const url = new URL(known.library);
  try {
    const answer = await oauth.protectedResourceRequest(token, "GET", url, undefined, undefined, loopback);
    return answer.status;
  } catch (error) {
    if (error instanceof oauth.WWWAuthenticateChallengeError) return error.status;
    throw error;
  }
}

async function claims(token) {
  const request = new Request(known.library, { headers: { authorization: `Bearer ${token}` } });
  return oauth.validateJwtAccessToken(as, request, known.root, { signingAlgorithms: ["ES256"], ...loopback });
}

async function ended(token, way) {
  const before = await library(token);
  const answer = await oauth.revocationRequest(as, client, way, token, loopback);
  await oauth.processRevocationResponse(answer);
  return [before, answer.status, await library(token)];
}

for (const [name, way] of [["client_secret_basic", basic], ["client_secret_post", post]]) {
  const answer = await oauth.clientCredentialsGrantRequest(as, client, way, new URLSearchParams({ scope }), loopback);
  seen[name] = await oauth.processClientCredentialsResponse(as, client, answer);
  seen[`${name}_claims`] = await claims(seen[name].access_token);
  seen[`${name}_ended`] = await ended(seen[name].access_token, way);
}

const verifier = oauth.generateRandomCodeVerifier();
const state = oauth.generateRandomState();
const address = new URL(as.authorization_endpoint);
address.search = new URLSearchParams({
  client_id: known.client_id,
  redirect_uri: known.redirect_uri,
  response_type: "code",
  scope,
  state,
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  resource: known.base,
});
const back = oauth.validateAuthResponse(as, client, await sendPersonTo(address.href), state);
const answer = await oauth.authorizationCodeGrantRequest(
  as, client, basic, back, known.redirect_uri, verifier, loopback,
);
seen.code = await oauth.processAuthorizationCodeResponse(as, client, answer);
seen.code_claims = await claims(seen.code.access_token);
seen.code_ended = await ended(seen.code.access_token, basic);
tell(seen);
