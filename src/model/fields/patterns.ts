/** RE2 patterns for complete values in schemas. Each accepts at least everything that the check in `names.ts` accepts. */
const label = '[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?';
const host = '[A-Za-z0-9_.-]*';
const ip = '(?:[0-9]{1,3}(?:\\.[0-9]{1,3}){3}|[0-9A-Za-z.%-]*:[0-9A-Za-z.:%-]*)';

export const labelPattern = `^${label}$`;
export const hostPattern = `^\\*?${host}$`;
export const hostOrIpPattern = `^(?:\\*?${host}|${ip})$`;
/** `[namespace/]host`. In a Sidecar, `~` before the namespace excludes the host. */
export const scopedHostPattern = `^(?:(?:~|~?(?:[*.]|${label}))/)?\\*?${host}$`;
export const subnetPattern = `^${ip}(?:/[0-9]{1,3})?$`;
export const exportTargetPattern = `^(?:[.*~]|${label})$`;
export const portPattern = '^[1-9][0-9]{0,4}$';
export const headerNamePattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
