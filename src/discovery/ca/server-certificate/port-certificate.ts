/** What the port with TLS shows, and by which roots it judges its clients: the effects of the chart `server-certificate`. */
import type { TlsOptions } from 'node:tls';
import type { CertificateReading } from '../../../../machines/discovery/ca/server-certificate.machine.ts';
import type { TrustPools } from '../../../identity/trust-pools.ts';
import { watchClockSteps } from '../../../runtime/clock-steps.ts';
import { explainInOneLine } from '../../../runtime/errors.ts';
import { type StopWatching, type WatchHandlers, watchFile } from '../../../runtime/files/file-watch.ts';
import type { SecurePort } from '../../xds/secure-port/secure-port.ts';
import {
  type PemServerCertificate,
  readServerCertificate,
  SecurePortCredentials,
} from '../../xds/secure-port/server-certificates.ts';
import type { AuthorityInForce } from '../authority.ts';
import { isOwnCertificateDue, issueOwnCertificate, type OwnCertificate } from './own-certificate.ts';

export interface PortCertificateOptions {
  readonly port: SecurePort;
  /** Names in a certificate that the authority signs. */
  readonly names: readonly string[];
  /** Undefined: there is no authority. */
  readonly inForce: () => AuthorityInForce | undefined;
  /** Roots by which clients are judged; undefined where there is no authority. */
  readonly trusted: () => TrustPools | undefined;
  readonly now?: () => Date;
}

/** What is shown, and where it is from. */
type Shown =
  | { readonly from: 'files'; readonly certificate: PemServerCertificate }
  | { readonly from: 'authority'; readonly certificate: OwnCertificate };

export class PortCertificate {
  readonly #options: PortCertificateOptions;
  readonly #now: () => Date;
  #shown: Shown | undefined;
  #credentials: SecurePortCredentials | undefined;
  #reported = '';
  readonly #followers = new Set<() => void>();

  constructor(options: PortCertificateOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => new Date());
  }

  /** Credentials of the port, once there is a certificate. They are the same object, whatever becomes of the certificate. */
  get credentials(): SecurePortCredentials {
    return this.#credentials!;
  }

  /** Where the current certificate comes from, and when it expires; `undefined` before there is one. */
  get current(): { readonly notAfter: Date; readonly from: Shown['from'] } | undefined {
    return this.#shown && { notAfter: this.#shown.certificate.notAfter, from: this.#shown.from };
  }

  /** Calls back at once and whenever the certificate or the trusted roots change. @returns how to stop */
  follow(changed: (options: TlsOptions) => void): () => void {
    const follower = (): void => changed(this.credentials.tlsOptions);
    this.#followers.add(follower);
    follower();
    return () => this.#followers.delete(follower);
  }

  /**
   * The first reading.
   *
   * @throws ChartpilotError for files that cannot be shown
   */
  begin(): PemServerCertificate {
    const shown = this.#obtained();
    this.#show(shown);
    this.#reported = shown.certificate.serialNumber;
    return shown.certificate;
  }

  /** Others sign, or other roots are trusted: it counts before anybody hears of it. */
  authorityChanged(): void {
    if (this.#shown !== undefined) this.#show(this.#shown.from === 'authority' ? this.#obtained() : this.#shown);
  }

  // ---- effects of the chart

  read(): CertificateReading {
    try {
      const shown = this.#obtained();
      this.#show(shown);
      const { serialNumber, notAfter } = shown.certificate;
      if (serialNumber === this.#reported) return { outcome: 'same' };
      this.#reported = serialNumber;
      return { outcome: 'taken', serialNumber, endsAt: notAfter.getTime() };
    } catch (error) {
      return { outcome: 'refused', reason: explainInOneLine(error) };
    }
  }

  watch(handlers: WatchHandlers): StopWatching {
    const { files } = this.#options.port;
    const stops = Object.values(files ?? {}).map((file: string) => watchFile(file, handlers));
    stops.push(watchClockSteps(() => handlers.changed('the clock')));
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** What should be shown now: what is shown already, where that is as good. */
  #obtained(): Shown {
    const { port, names, inForce } = this.#options;
    if (port.files !== undefined) {
      return { from: 'files', certificate: readServerCertificate(port.files, this.#now()) };
    }
    const authority = inForce()!;
    const shown = this.#shown;
    if (shown?.from === 'authority' && !isOwnCertificateDue(shown.certificate, authority, this.#now())) return shown;
    return { from: 'authority', certificate: issueOwnCertificate(authority, names, this.#now()) };
  }

  /** Handshakes from now on: with this certificate, and the roots that are trusted now. */
  #show(shown: Shown): void {
    this.#shown = shown;
    const { port } = this.#options;
    const pools = this.#options.trusted();
    const { certificate } = shown;
    // Clients show what the authority signed, or what the authority of the files did.
    const ofFiles = shown.from === 'files' ? certificate.ca.toString() : '';
    const offered = { ...certificate, ca: Buffer.from(`${ofFiles}\n${pools?.own.pem ?? ''}`) };
    const others = pools && {
      accepts: (chain: readonly Uint8Array[]) => pools.isOfAlias(chain, this.#now()),
      roots: pools.rootsOfAliases,
    };
    if (this.#credentials === undefined) this.#credentials = new SecurePortCredentials(port, offered, others);
    else this.#credentials.use(port, offered, others);
    for (const follower of this.#followers) follower();
  }
}
