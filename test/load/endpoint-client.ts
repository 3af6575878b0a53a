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
  #arrived: () => void = () => {};
  #awaited = '';

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
      if (resources.some(({ value }) => Buffer.from(value).includes(this.#awaited))) this.#arrived();
    };
    this.#stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
    await this.#stream.next();
    this.#stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster] });
    await this.#stream.next();
  }

  /** @returns milliseconds from the change to its arrival; at least `maxMs` if it did not arrive in time */
  async push(maxMs: number): Promise<number> {
    this.#awaited = `10.${1 + (++this.#address % 200)}.${1 + Math.floor(this.#address / 200)}.7`;
    const arrived = new Promise<'arrived'>((resolve) => {
      this.#arrived = () => resolve('arrived');
    });
    const begun = performance.now();
    writeFileSync(join(this.#root, 'config/cart.yaml'), serviceEntry([this.#awaited]));
    await Promise.race([arrived, sleep(maxMs, 'late', { ref: false })]);
    return performance.now() - begun;
  }

  close(): void {
    this.#stream.cancel();
    this.#client.close();
  }
}
