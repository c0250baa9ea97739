import type { XmlElement } from '@catchword/xml/read';

type Fields = Readonly<Record<string, unknown>>;

/*
 * Live services answer book operations in XML, whose layout the interface does not show. It is read as the JSON would be:
 * child elements and attributes are fields, and a dash in a name is an underscore.
 */

function nameOf(name: string): string {
  return name.replaceAll('-', '_');
}

function elementValue(element: XmlElement): unknown {
  const { attributes, children, text } = element;
  if (attributes.get('nil') === 'true') return null;
  if (attributes.get('type') === 'array') return children.map(elementValue);
  const others = [...attributes.keys()].filter((name) => name !== 'type' && name !== 'nil');
  if (children.length === 0 && others.length === 0) return text;
  return { ...fieldsOf(element), ...(text !== '' && { text }) };
}

/** Elements of the same name are one array. */
function fieldsOf({ attributes, children }: XmlElement): Fields {
  const values = new Map<string, unknown[]>();
  for (const child of children) {
    const name = nameOf(child.name);
    values.set(name, [...(values.get(name) ?? []), elementValue(child)]);
  }
  const own = [...attributes].map(([name, value]) => [nameOf(name), value] as const);
  const fields = [...values].map(([name, list]) => [name, list.length === 1 ? list[0] : list] as const);
  return Object.fromEntries([...own, ...fields]);
}

/** The outermost element with one of `names` as an attribute or child; undefined if there is none, or several siblings. */
export function objectOfXml(elements: readonly XmlElement[], names: readonly string[]): Fields | undefined {
  const isOne = ({ attributes, children }: XmlElement): boolean =>
    [...attributes.keys(), ...children.map(({ name }) => name)].some((name) => names.includes(nameOf(name)));
  // Bodies without the root have been seen.
  const top = { name: '', attributes: new Map<string, string>(), children: elements, text: '' };
  const found = isOne(top) ? [top] : elements.filter(isOne);
  const [only] = found;
  if (only !== undefined) return found.length === 1 ? fieldsOf(only) : undefined;
  const children = elements.flatMap((element) => element.children);
  return children.length === 0 ? undefined : objectOfXml(children, names);
}
