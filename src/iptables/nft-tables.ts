import { nftTables } from './nftables.ts';
import { run, runOrThrow, withNetworkNamespace } from './run-command.ts';

type Network = string | undefined;

/** Names have the form `inet istio-proxy-nat`. Empty if nft is not installed. */
export async function presentNftTables(network: Network): Promise<string[]> {
  const { exitCode, stdout } = await run(withNetworkNamespace(network, { program: 'nft', args: ['list', 'tables'] }));
  if (exitCode !== 0) return [];
  return [...stdout.matchAll(/^table (\S+ (\S+))$/gm)]
    .filter(([, , name]) => nftTables.includes(name!))
    .map(([, table]) => table!);
}

export async function presentNftMarks(tables: readonly string[], network: Network): Promise<number[]> {
  const texts = await Promise.all(tables.map((table) => nftTableText(table, network)));
  return texts.flatMap((text) =>
    [...text.matchAll(/tproxy ip6? to :\d+ meta mark set (0x[\da-f]+)/g)].map(([, mark]) => Number(mark)),
  );
}

export async function nftTableText(table: string, network: Network): Promise<string> {
  return (
    await run(withNetworkNamespace(network, { program: 'nft', args: ['-s', 'list', 'table', ...table.split(' ')] }))
  ).stdout;
}

export async function removeNftTables(tables: readonly string[], network: Network): Promise<void> {
  if (tables.length > 0) await applyNft(tables.map((table) => `delete table ${table}\n`).join(''), network);
}

/** @throws ChartpilotError IPTABLES_FAILED with the error output of nft */
export async function applyNft(text: string, network: Network): Promise<void> {
  await runOrThrow(withNetworkNamespace(network, { program: 'nft', args: ['-f', '-'] }), { input: text });
}
