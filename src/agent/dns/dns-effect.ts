/** The server effect of the dns actor. */
import { fromCallback } from 'xstate';
import type { DnsPortFailed, DnsPortListening, NameTableReceived } from '../../../machines/agent/dns-protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { DnsCounts } from './dns-counts.ts';
import type { DnsOptions } from './dns-options.ts';
import { DnsServer } from './dns-server.ts';
import type { DnsTables } from './dns-tables.ts';
import { DnsUpstream } from './dns-upstream.ts';

export interface DnsEnvironment {
  readonly options: DnsOptions;
  readonly tables: DnsTables;
  readonly counts: DnsCounts;
}

type Report = DnsPortListening | DnsPortFailed | NameTableReceived;

export function dnsServer({ options, tables, counts }: DnsEnvironment) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) => {
    let isOpen = true;
    const report = (event: Report): void => {
      if (isOpen) sendBack(event);
    };
    const { addresses } = options;
    const upstream = new DnsUpstream(options, counts.upstream);
    const failed = (error: unknown): void => {
      upstream.close();
      server.close();
      report({ type: 'dns-port.failed', reason: `the DNS server at ${addresses.join(', ')}: ${messageOf(error)}` });
    };
    const server = new DnsServer({
      addresses,
      port: options.port,
      names: () => tables.names,
      forwardBeforeTable: options.forwardBeforeTable,
      upstream,
      counts,
      failed,
    });
    const unfollow = tables.follow(({ size, skipped }) =>
      report({ type: 'name-table.received', names: size, skipped }),
    );
    server.open().then((port) => {
      if (isOpen) report({ type: 'dns-port.listening', addresses: [...addresses], port });
      else server.close();
    }, failed);
    return () => {
      isOpen = false;
      unfollow();
      upstream.close();
      server.close();
    };
  });
}
