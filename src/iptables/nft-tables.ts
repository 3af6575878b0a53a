import { nftTables } from './nftables.ts';
import { inNetworkNamespace, run, runOrThrow } from './run-command.ts';

type Network = string | undefined;

/** Lists existing tables by names such as `inet istio-proxy-nat`; empty if nft is not installed. */
export async function presentNftTables(network: Network): Promise<string[]> {
  const { exitCode, stdout } = await run(inNetworkNamespace(network, { program: 'nft', args: ['list', 'tables'] }));
  if (exitCode !== 0) return [];
  return [...stdout.matchAll(/^table (\S+ (\S+))$/gm)]
    .filter(([, , name]) => nftTables.includes(name!))
    .map(([, table]) => table!);
}

/** Lists the marks that TPROXY sets in these tables. */
export async function presentNftMarks(tables: readonly string[], network: Network): Promise<number[]> {
  const texts = await Promise.all(tables.map((table) => nftTableText(table, network)));
  return texts.flatMap((text) =>
    [...text.matchAll(/tproxy ip6? to :\d+ meta mark set (0x[\da-f]+)/g)].map(([, mark]) => Number(mark)),
  );
}

export async function nftTableText(table: string, network: Network): Promise<string> {
  return (
    await run(inNetworkNamespace(network, { program: 'nft', args: ['-s', 'list', 'table', ...table.split(' ')] }))
  ).stdout;
}

/** @throws ChartpilotError IPTABLES_FAILED with the error output of nft */
export async function removeNftTables(tables: readonly string[], network: Network): Promise<void> {
  if (tables.length > 0) await applyNft(tables.map((table) => `delete table ${table}\n`).join(''), network);
}

/**
 * Applies a text in one transaction.
 *
 * @throws ChartpilotError IPTABLES_FAILED with the error output of nft
 */
export async function applyNft(text: string, network: Network): Promise<void> {
  await runOrThrow(inNetworkNamespace(network, { program: 'nft', args: ['-f', '-'] }), { input: text });
}
