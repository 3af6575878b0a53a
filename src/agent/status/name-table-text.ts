import type { DnsNames } from '../../runtime/dns/dns-names.ts';

const namesPerChunk = 500;

/** Yields `{"table":{name:{"ips":[…]}}}` in chunks of 500 names: a large mesh has tens of thousands. */
export function* nameTableText(names: DnsNames): Generator<string> {
  let lines: string[] = [];
  let separator = '{"table":{\n';
  for (const [name, ips] of names.entries()) {
    lines.push(`${JSON.stringify(name)}:${JSON.stringify({ ips })}`);
    if (lines.length < namesPerChunk) continue;
    yield `${separator}${lines.join(',\n')}`;
    separator = ',\n';
    lines = [];
  }
  yield `${lines.length > 0 || separator.startsWith('{') ? separator : ''}${lines.join(',\n')}\n}}\n`;
}
