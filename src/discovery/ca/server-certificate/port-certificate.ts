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
import type { ActiveAuthority } from '../authority.ts';
import { type ControlPlaneCertificate, isCertificateDue, issueControlPlaneCertificate } from './own-certificate.ts';

export interface PortCertificateOptions {
  readonly port: SecurePort;
  readonly names: readonly string[];
  /** `undefined` without an authority. */
  readonly activeAuthority: () => ActiveAuthority | undefined;
  /** These roots verify clients; `undefined` without an authority. */
  readonly trustedRoots: () => TrustPools | undefined;
  readonly now?: () => Date;
}

type PresentedCertificate =
  | { readonly from: 'files'; readonly certificate: PemServerCertificate }
  | { readonly from: 'authority'; readonly certificate: ControlPlaneCertificate };

export class PortCertificate {
  readonly #options: PortCertificateOptions;
  readonly #now: () => Date;
  #presentedCertificate: PresentedCertificate | undefined;
  #credentials: SecurePortCredentials | undefined;
  #reportedText = '';
  readonly #followers = new Set<() => void>();

  constructor(options: PortCertificateOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => new Date());
  }

  /** The object is the same for all certificates. */
  get credentials(): SecurePortCredentials {
    return this.#credentials!;
  }

  get current(): { readonly notAfter: Date; readonly from: PresentedCertificate['from'] } | undefined {
    return (
      this.#presentedCertificate && {
        notAfter: this.#presentedCertificate.certificate.notAfter,
        from: this.#presentedCertificate.from,
      }
    );
  }

  /**
   * The listener is called now and on each change of the certificate or trusted roots.
   *
   * @returns a stop function
   */
  follow(onChanged: (options: TlsOptions) => void): () => void {
    const follower = (): void => onChanged(this.credentials.tlsOptions);
    this.#followers.add(follower);
    follower();
    return () => this.#followers.delete(follower);
  }

  /** @throws ChartpilotError if the files are invalid */
  load(): PemServerCertificate {
    const certificateToPresent = this.#currentOrIssued();
    this.#presentCertificate(certificateToPresent);
    this.#reportedText = certificateToPresent.certificate.serialNumber;
    return certificateToPresent.certificate;
  }

  /** Must be called before clients are notified. */
  authorityChanged(): void {
    if (this.#presentedCertificate !== undefined)
      this.#presentCertificate(
        this.#presentedCertificate.from === 'authority' ? this.#currentOrIssued() : this.#presentedCertificate,
      );
  }

  read(): CertificateReading {
    try {
      const certificateToPresent = this.#currentOrIssued();
      this.#presentCertificate(certificateToPresent);
      const { serialNumber, notAfter } = certificateToPresent.certificate;
      if (serialNumber === this.#reportedText) return { outcome: 'same' };
      this.#reportedText = serialNumber;
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

  #currentOrIssued(): PresentedCertificate {
    const { port, names, activeAuthority } = this.#options;
    if (port.files !== undefined) {
      return { from: 'files', certificate: readServerCertificate(port.files, this.#now()) };
    }
    const authority = activeAuthority()!;
    const previousCertificate = this.#presentedCertificate;
    if (
      previousCertificate?.from === 'authority' &&
      !isCertificateDue(previousCertificate.certificate, authority, this.#now())
    )
      return previousCertificate;
    return { from: 'authority', certificate: issueControlPlaneCertificate(authority, names, this.#now()) };
  }

  /** Uses the certificate for new handshakes. */
  #presentCertificate(nextCertificate: PresentedCertificate): void {
    this.#presentedCertificate = nextCertificate;
    const { port } = this.#options;
    const pools = this.#options.trustedRoots();
    const { certificate } = nextCertificate;
    // Client certificates are signed by the authority or by the CA of the files.
    const fileRoots = nextCertificate.from === 'files' ? certificate.ca.toString() : '';
    const tlsOptions = { ...certificate, ca: Buffer.from(`${fileRoots}\n${pools?.meshBundle.pem ?? ''}`) };
    const otherRoots = pools && {
      acceptsChain: (chain: readonly Uint8Array[]) => pools.isAliasWorkload(chain, this.#now()),
      roots: pools.rootsOfAliases,
    };
    if (this.#credentials === undefined) this.#credentials = new SecurePortCredentials(port, tlsOptions, otherRoots);
    else this.#credentials.replaceCertificate(port, tlsOptions, otherRoots);
    for (const follower of this.#followers) follower();
  }
}
