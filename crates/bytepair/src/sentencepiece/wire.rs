//! The wire format of protocol buffers, as much of it as a `.model` file needs: fields one after the
//! other, each a number that names it and says how its value is written, and the value.

use std::fmt;

/// A value, not yet what its field makes of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'m> {
    Number(u64),
    Fixed64,
    Bytes(&'m [u8]),
    Fixed32([u8; 4]),
}

/// A field: its number, its value, and where it begins in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'m> {
    pub(super) number: u64,
    pub(super) value: Value<'m>,
    pub(super) at: usize,
}

/// The fields of a message. Ends after an error.
#[derive(Debug, Clone)]
pub(super) struct Fields<'m> {
    message: &'m [u8],
    next: usize,
    /// Where the message begins in the file.
    origin: usize,
}

/// What is wrong with the bytes, and where in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WireError {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.what, self.at)
    }
}

impl std::error::Error for WireError {}

impl<'m> Fields<'m> {
    /// The fields of a message that begins at byte `origin` of the file.
    pub(super) fn new(message: &'m [u8], origin: usize) -> Self {
        Self {
            message,
            next: 0,
            origin,
        }
    }

    fn error(&self, what: &'static str) -> WireError {
        WireError {
            at: self.origin + self.next,
            what,
        }
    }

    /// A number of up to 64 bits, seven to a byte.
    fn varint(&mut self) -> Result<u64, WireError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self
                .message
                .get(self.next)
                .ok_or_else(|| self.error("the file breaks off in a number"))?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                break;
            }
            self.next += 1;
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.error("a number has over 64 bits"))
    }

    fn take(&mut self, length: u64) -> Result<&'m [u8], WireError> {
        let rest = self.message.get(self.next..).unwrap_or_default();
        let bytes = usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length));
        let bytes = bytes.ok_or_else(|| self.error("the file breaks off in a field"))?;
        self.next += bytes.len();
        Ok(bytes)
    }

    fn field(&mut self) -> Result<Field<'m>, WireError> {
        let at = self.origin + self.next;
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => {
                self.take(8)?;
                Value::Fixed64
            }
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => {
                let bytes = self.take(4)?;
                Value::Fixed32(bytes.try_into().unwrap_or_default())
            }
            _ => return Err(self.error("a field of an unknown kind")),
        };
        match key >> 3 {
            0 => Err(WireError {
                at,
                what: "a field has the number 0",
            }),
            number => Ok(Field { number, value, at }),
        }
    }
}

impl<'m> Iterator for Fields<'m> {
    type Item = Result<Field<'m>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.message.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.next = self.message.len();
        }
        Some(field)
    }
}

impl<'m> Field<'m> {
    fn wrong(&self) -> WireError {
        WireError {
            at: self.at,
            what: "a field has a value of another kind than it should",
        }
    }

    pub(super) fn number(&self) -> Result<u64, WireError> {
        match self.value {
            Value::Number(number) => Ok(number),
            _ => Err(self.wrong()),
        }
    }

    pub(super) fn flag(&self) -> Result<bool, WireError> {
        Ok(self.number()? != 0)
    }

    pub(super) fn float(&self) -> Result<f32, WireError> {
        match self.value {
            Value::Fixed32(bytes) => Ok(f32::from_le_bytes(bytes)),
            _ => Err(self.wrong()),
        }
    }

    pub(super) fn bytes(&self) -> Result<&'m [u8], WireError> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong()),
        }
    }

    pub(super) fn text(&self) -> Result<&'m str, WireError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| WireError {
            at: self.at,
            what: "a text is not UTF-8",
        })
    }

    /// The fields of the message that this is.
    pub(super) fn message(&self) -> Result<Fields<'m>, WireError> {
        // Key and length come before it; where exactly is of no matter for a message of an error.
        Ok(Fields::new(self.bytes()?, self.at))
    }
}
