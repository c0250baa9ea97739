/** Words that products are made of. None needs escaping in JSON. Frequent words are repeated. */
function list(words: string): readonly string[] {
  return words.split(', ');
}

export const FIELDS = list(
  'Biology, Chemistry, Economics, Linguistics, Astronomy, Geology, Psychology, Sociology, Mathematics, ' +
    'Statistics, Philosophy, Architecture, Nursing, Pharmacology, Accounting, Marketing, Hydrology, Botany, ' +
    'Typography, Bookbinding, Robotics, Thermodynamics, Genetics, Anthropology, Musicology, Meteorology, ' +
    'Cryptography, Epidemiology, Logistics, Agronomy, Oceanography, Ethics',
);
export const QUALITIES = list(
  'Modern, Applied, Practical, Molecular, Comparative, Clinical, Experimental, Quantitative, Historical, ' +
    'Advanced, Elementary, Computational, Urban, Medieval, Tropical, Organic',
);
export const OPENINGS = list(
  'Introduction to, Principles of, Foundations of, A Short History of, The Handbook of, Essays on, ' +
    'Problems in, Elements of, A Companion to, Understanding, Methods of, The Art of',
);
export const SUBTITLES = list(
  'Theory and Practice, A Global Perspective, Concepts and Cases, With Exercises and Solutions, ' +
    'From Antiquity to the Present, An Illustrated Guide, Tools for the Working Student, Selected Readings',
);
export const FIRST_NAMES = list(
  'Ada, Benedikt, Chiara, Dmitri, Élodie, Farid, Grace, Hiroshi, Ingrid, José, Katarzyna, Liam, Mei, Nadia, ' +
    'Oluwaseun, Priya',
);
export const LAST_NAMES = list(
  'Abernathy, Björnsson, Castellanos, Dubois, Eriksen, Fontaine, Gutenberg, Haldane, Ivanova, Jansen, ' +
    'Kowalski, Lindqvist, Müller, Nakamura, Okonkwo, Petrosyan, Quispe, Rosenthal, Suzuki, Thornbury, Ueda, ' +
    'Venkatesan, Whitcombe, Zielinski',
);
export const PUBLISHERS = list(
  'Harbour Lane Press, Northfield Academic, Quill and Anchor, Meridian University Press, Larkspur Books, ' +
    'Copperplate House, Old Mill Publishing, Saltmarsh Editions',
);
export const KINDS = list('book, book, book, book, book, title, chapter, online resource');
export const FORMATS = list('ePub, ePub, pdf, pbk');
export const LANGUAGES = list('en, en, en, es, fr, de, pt, ja');
export const CURRENCIES = list('USD, EUR, GBP, CAD');
export const COUNTRIES = list('US, CA, GB, IE, DE, FR, ES, IT, NL, SE, JP, KR, AU, NZ, ZA, BR');
