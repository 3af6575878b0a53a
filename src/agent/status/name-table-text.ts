import type { DnsNames } from '../../runtime/dns/dns-names.ts';

const namesPerChunk = 500;

/** The text is yielded in chunks, because a large mesh has tens of thousands of names. */
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
