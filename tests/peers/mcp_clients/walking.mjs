// What a client of the official SDK does here: it lists, calls, is refused, gets a plan, and is told of an unknown tool.
export async function walk(client, revision, lead) {
  const seen = { revision };
  seen.tools = (await client.listTools()).tools.map((each) => each.name);
  seen.got = (await client.callTool({ name: "lead__get", arguments: { id: lead } })).structuredContent;
  const refused = await client.callTool({ name: "lead__get", arguments: { id: "x" } });
  seen.refused = [refused.isError, refused.content[0].text];
  const proposed = await client.callTool({ name: "lead__delete", arguments: { id: lead } });
  seen.proposed = [proposed.isError, proposed.structuredContent];
  try {
    await client.callTool({ name: "lead__fly", arguments: {} });
  } catch (error) {
    seen.unknown = [error.code, error.message];
  }
  await client.close();
  process.stdout.write(JSON.stringify(seen));
}
