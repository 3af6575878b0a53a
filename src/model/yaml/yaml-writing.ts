/**
 * Objects as YAML. A file of its own because few write any, and load it when they do: an `import()` of the package itself has no
 * names in a bundle, only a default.
 */
export { stringify } from 'yaml';
