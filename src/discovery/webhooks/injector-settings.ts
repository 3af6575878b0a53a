/** The settings are in the ConfigMap `istio-sidecar-injector` of the control plane's namespace. */
import * as E from 'fp-ts/lib/Either.js';
import { decodeInjectionConfig, decodeWrittenValues } from '../../injection/settings.decode.ts';
import { defaultInjectionConfig, type InjectionSettings } from '../../injection/settings.ts';
import type { FieldError } from '../../model/fields/decode.ts';
import { missingValue } from '../../model/fields/violation.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Logger } from '../../runtime/output/log.ts';

export interface InjectorConfigMap {
  /** Location such as `istio-system/istio-sidecar-injector`. */
  readonly location: string;
  /** `undefined` if the ConfigMap does not exist. */
  readonly readData: () => unknown;
  readonly firstList: Promise<void>;
  readonly onChanged: (onChanged: () => void) => void;
}

export interface InjectorSettingsOptions {
  readonly configMap: InjectorConfigMap;
  readonly revision: string;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** While the ConfigMap is invalid, the last valid content applies. Errors are logged once. */
export class InjectorSettings {
  readonly #options: InjectorSettingsOptions;
  #settings: InjectionSettings | undefined;
  #problem: string;
  /** Last read content, so that unchanged content is not logged again. */
  #lastReadText: string | undefined;

  constructor(options: InjectorSettingsOptions) {
    this.#options = options;
    this.#problem = `ConfigMap ${options.configMap.location} was not read yet`;
    options.configMap.onChanged(() => this.#watchSettings());
    // Required, because an initial list without the ConfigMap causes no change event.
    void options.configMap.firstList.then(() => this.#watchSettings());
  }

  get currentSettings(): E.Either<string, InjectionSettings> {
    return this.#settings === undefined ? E.left(this.#problem) : E.right(this.#settings);
  }

  #watchSettings(): void {
    const { configMap } = this.#options;
    const data = configMap.readData();
    const currentText = JSON.stringify(data) ?? 'absent';
    if (currentText === this.#lastReadText) return;
    this.#lastReadText = currentText;
    if (data === undefined) this.#onRemoved();
    else this.#applySettings(isObject(data) ? data : {});
  }

  /** Reviews fail without settings, because pods without a sidecar would bypass the mesh. */
  #onRemoved(): void {
    const { configMap, log } = this.#options;
    this.#settings = undefined;
    this.#problem = `ConfigMap ${configMap.location} with the settings of the injector does not exist; create it`;
    log.info('injection.settingsMissing', { configMap: configMap.location });
  }

  #applySettings(data: Readonly<Record<string, unknown>>): void {
    const { configMap, revision, log } = this.#options;
    const config =
      data.config === undefined
        ? E.right({ settings: defaultInjectionConfig, warnings: [] })
        : decodeInjectionConfig(String(data.config));
    const values =
      data.values === undefined
        ? E.left<FieldError[]>([{ path: '', ...missingValue() }])
        : decodeWrittenValues(String(data.values));
    const errors = [
      ...(E.isLeft(config) ? config.left.map((error) => ({ key: 'config', error })) : []),
      ...(E.isLeft(values) ? values.left.map((error) => ({ key: 'values', error })) : []),
    ];
    if (E.isLeft(config) || E.isLeft(values)) {
      for (const { key, error } of errors) this.#reject(key, error);
      return;
    }
    for (const { path, message } of config.right.warnings)
      log.warn('injection.settingsIgnored', {
        configMap: configMap.location,
        field: `config: ${path}`,
        reason: message,
      });
    this.#settings = { config: config.right.settings, ...values.right, revision };
    log.info('injection.settingsLoaded', { configMap: configMap.location });
  }

  #reject(key: string, { code, path, message }: FieldError): void {
    const { configMap, log } = this.#options;
    const field = path === '' ? key : `${key}: ${path}`;
    this.#problem = `ConfigMap ${configMap.location} is invalid: ${field}: ${message}`;
    log.warn('injection.settingsRejected', { configMap: configMap.location, field, code, reason: message });
  }
}
