import { fromCallback } from 'xstate';
import { dnsMachine } from '../../../machines/agent/dns/dns.machine.ts';
import type { DnsPortFailed, DnsPortListening, NameTableReceived } from '../../../machines/agent/dns-protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import type { KeptPorts } from '../ports/kept-ports.ts';
import type { DnsCounts } from './dns-counts.ts';
import type { DnsOptions } from './dns-options.ts';
import { DnsServer } from './dns-server.ts';
import type { DnsTables } from './dns-tables.ts';
import { DnsUpstream } from './dns-upstream.ts';

export interface DnsEnvironment {
  readonly options: DnsOptions;
  readonly tables: DnsTables;
  readonly counts: DnsCounts;
  /** Another agent may own the port before or after this one. */
  readonly ownership?: Ownership;
  readonly ports?: KeptPorts;
}

/** Upstream servers usually respond within milliseconds. */
const leaveLimitMs = 300;

type Report = DnsPortListening | DnsPortFailed | NameTableReceived;

export function dnsWithEffects(environment: DnsEnvironment) {
  return dnsMachine.provide({ actors: { server: dnsServer(environment) } });
}

function dnsServer({ options, tables, counts, ownership, ports }: DnsEnvironment) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) => {
    let isOpen = true;
    const report = (event: Report): void => {
      if (isOpen) sendBack(event);
    };
    const { addresses } = options;
    const upstream = new DnsUpstream(options, counts.upstream);
    const reportFailure = (error: unknown): void => {
      closeServer();
      report({ type: 'dns-port.failed', reason: `DNS server on ${addresses.join(', ')}: ${messageOf(error)}` });
    };
    const closeServer = (): void => {
      upstream.close();
      ports?.release('dns');
      server.close();
    };
    const buildServer = (isShared: boolean): DnsServer =>
      new DnsServer({
        addresses,
        port: options.port,
        isShared,
        names: () => tables.names,
        forwardBeforeTable: options.forwardBeforeTable,
        upstream,
        counts,
        onFailed: reportFailure,
      });
    const server = buildServer(ownership !== undefined);
    const unsubscribe = tables.subscribe(({ size, skipped }) =>
      report({ type: 'name-table.received', names: size, skipped }),
    );
    const reportListening = (port: number): void =>
      report({ type: 'dns-port.listening', addresses: [...addresses], port });
    const isFirstOwner = ownership?.isOurs !== false;
    const openServer = async (): Promise<void> => {
      if (isFirstOwner && ownership !== undefined && ports?.isAfterAnother !== true)
        await requireFreePort(buildServer(false));
      const port = await server.open();
      if (!isOpen) {
        server.close();
        return;
      }
      ports?.keep('dns', server.sockets, server);
      if (isFirstOwner) reportListening(port);
    };
    let isStartDue = true;
    const startServer = async (): Promise<void> => {
      if (!isStartDue) return;
      isStartDue = false;
      await openServer().catch(reportFailure);
    };
    if (ownership === undefined) void startServer();
    // Report in a later iteration of the event loop, so that name tables are reported first.
    else if (!isFirstOwner) setImmediate(() => reportListening(options.port));
    const leaveOwnership = ownership?.onAcquired(startServer);
    const leaveReleased = ownership?.onReleased(() => server.closeWhenIdle(leaveLimitMs));
    return () => {
      isOpen = false;
      leaveOwnership?.();
      leaveReleased?.();
      unsubscribe();
      closeServer();
    };
  });
}

/** Opening a shared port never fails, so this tests that no other program uses it. */
async function requireFreePort(trialServer: DnsServer): Promise<void> {
  await trialServer.open();
  trialServer.close();
}
