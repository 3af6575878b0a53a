/** Creates GatewayClass `istio` if the CRDs of the Gateway API exist, as Istio does. An existing class is never changed. */
import { controllerName, defaultClass } from '../../model/translation/gateway-api/translation-context.ts';
import type { Duty, DutyReport, DutyRun } from '../election/duty.ts';
import type { WriteGate } from '../election/write-gate.ts';
import { statusOf } from '../kubernetes/api-failure.ts';
import { customResourceDefinitions, resourceOf } from '../kubernetes/api-resource.ts';
import type { InformerEffects } from '../kubernetes/api-server.effects.ts';
import { DueKeys } from './due-keys.ts';

export interface GatewayClassOptions {
  readonly informers: Pick<InformerEffects, 'storeOf' | 'addReader' | 'servedResource'>;
  readonly lease: string;
}

const classes = resourceOf('GatewayClass');
const definition = `/${classes.plural}.${classes.group}`;
const spec = { controllerName, description: 'Gateways that this control plane configures' };

export class GatewayClassDuty implements Duty {
  readonly lease: string;
  readonly #informers: GatewayClassOptions['informers'];
  readonly #dueKeys = new DueKeys();

  constructor({ informers, lease }: GatewayClassOptions) {
    this.lease = lease;
    this.#informers = informers;
    informers.addReader(classes, (changes) => {
      if (changes.some(({ event, key }) => event === 'delete' && key === `/${defaultClass}`))
        this.#dueKeys.add(defaultClass);
    });
    informers.addReader(customResourceDefinitions, (changes) => {
      if (changes.some(({ event, key }) => event !== 'delete' && key === definition)) this.#dueKeys.add(defaultClass);
    });
  }

  watch(onDue: () => void): () => void {
    return this.#dueKeys.watch(onDue);
  }

  get isDue(): boolean {
    return this.#dueKeys.isDue;
  }

  writeDue(run: DutyRun, writeGate: WriteGate): Promise<DutyReport> {
    return this.#dueKeys.write(
      run,
      () => [defaultClass],
      (name) => this.#write(name, writeGate),
    );
  }

  async #write(name: string, writeGate: WriteGate): Promise<boolean> {
    const isDefined = this.#informers.storeOf(customResourceDefinitions).get(definition) !== undefined;
    if (!isDefined || this.#informers.storeOf(classes).get(`/${name}`) !== undefined) return false;
    try {
      await writeGate.write({
        verb: 'create',
        resource: this.#informers.servedResource(classes),
        name,
        object: { spec },
      });
      return true;
    } catch (error) {
      // Another writer has created the class.
      if (statusOf(error) === 409) return false;
      throw error;
    }
  }
}
