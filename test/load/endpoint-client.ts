/** A sidecar that acknowledges responses and measures how long endpoint changes of one service take to arrive. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AdsTestClient, type SotwStream, typeUrls } from '../ads-client.ts';
import { cartCluster, serviceEntry, sidecar } from '../harness/control-plane.ts';

export class EndpointClient {
  readonly #root: string;
  readonly #client: AdsTestClient;
  readonly #stream: SotwStream;
  #address = 0;
  #onArrival: () => void = () => {};
  #awaitedAddress = '';

  /** @param root its `config/cart.yaml` defines the service */
  constructor(root: string, port: number) {
    this.#root = root;
    this.#client = new AdsTestClient(port);
    this.#stream = this.#client.sotw();
  }

  async subscribe(): Promise<void> {
    this.#stream.onResponse = ({ typeUrl, nonce, versionInfo, resources }) => {
      const resourceNames = typeUrl === typeUrls.EDS ? [cartCluster] : [];
      this.#stream.send({ typeUrl, responseNonce: nonce, versionInfo, resourceNames });
      if (resources.some(({ value }) => Buffer.from(value).includes(this.#awaitedAddress))) this.#onArrival();
    };
    this.#stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
    await this.#stream.next();
    this.#stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster] });
    await this.#stream.next();
  }

  /** @returns milliseconds from the change to its arrival; at least `maxMs` if it did not arrive in time */
  async push(maxMs: number): Promise<number> {
    this.#awaitedAddress = `10.${1 + (++this.#address % 200)}.${1 + Math.floor(this.#address / 200)}.7`;
    const arrivalPromise = new Promise<'arrived'>((resolve) => {
      this.#onArrival = () => resolve('arrived');
    });
    const startedAt = performance.now();
    writeFileSync(join(this.#root, 'config/cart.yaml'), serviceEntry([this.#awaitedAddress]));
    await Promise.race([arrivalPromise, sleep(maxMs, 'late', { ref: false })]);
    return performance.now() - startedAt;
  }

  close(): void {
    this.#stream.cancel();
    this.#client.close();
  }
}
